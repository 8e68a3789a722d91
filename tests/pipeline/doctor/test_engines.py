"""`memstate doctor` examines database, broker and cluster where the environment or Dagster's settings name them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import yaml

from memstate_core.night.erasure.run_database import POSTGRES_VARIABLE
from memstate_core.run.store import Store, open_store
from memstate_pipeline.deploy.helm import helm_files
from memstate_pipeline.doctor.engines import engines
from memstate_pipeline.instance import dagster_home
from memstate_pipeline.instance_settings import BROKER_VARIABLE, RESULTS_VARIABLE
from memstate_pipeline.pod_settings import IMAGE_VARIABLE, NAMESPACE_VARIABLE
from tests.pipeline.deploy import helm_chart
from tests.pipeline.engines import free_port
from tests.pipeline.kubernetes_api import NAMESPACE, cluster

DATABASE = {POSTGRES_VARIABLE: "postgresql+psycopg2://memstate:a-password@127.0.0.1:{port}/memstate"}
BROKER = dict.fromkeys((BROKER_VARIABLE, RESULTS_VARIABLE), "redis://:a-password@127.0.0.1:{port}/0")

PODS = {IMAGE_VARIABLE: "memstate", NAMESPACE_VARIABLE: NAMESPACE}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(tmp_path, {})


def test_nothing_is_examined_where_nothing_is_set(store: Store) -> None:
    assert engines(store, {}) == []
    (alone,) = engines(store, BROKER)
    assert (alone.name, alone.ok, POSTGRES_VARIABLE in alone.detail) == ("broker", True, True)


def test_what_the_settings_name_is_examined_though_it_is_not_set(store: Store) -> None:
    dagster_home(store.home, DATABASE | BROKER)
    for finding, name in zip(engines(store, {}), (POSTGRES_VARIABLE, BROKER_VARIABLE), strict=True):
        assert (finding.ok, finding.detail) == (False, f"the environment variable {name} is not set")


@pytest.mark.slow
def test_what_does_not_answer_is_named_without_its_password(store: Store) -> None:
    for module in ("dagster_postgres", "dagster_celery"):
        pytest.importorskip(module, reason="needs the extra cluster")
    port = free_port()
    refused = {name: url.format(port=port) for name, url in (DATABASE | BROKER).items()}
    for given, problem in (
        (refused, "refused"),
        ({POSTGRES_VARIABLE: "postgresql+psycopg2://a-password"}, "could not translate host name"),
        ({**refused, BROKER_VARIABLE: "carrier-pigeon://a-password"}, "No such transport"),
    ):
        findings = engines(store, given)
        assert not any(finding.ok for finding in findings)
        assert problem in findings[-1].detail
        assert findings[-1].detail.endswith("start it, or correct the variable")
        assert not any(":a-password" in finding.detail for finding in findings)


def test_a_cluster_is_asked_whether_pods_may_be_made(store: Store, tmp_path: Path) -> None:
    pytest.importorskip("dagster_k8s", reason="needs the extra k8s")
    with cluster() as api:
        settings = dagster_home(store.home, {**DATABASE, **PODS}) / "dagster.yaml"
        file = f"load_incluster_config: false\n    kubeconfig_file: {api.kubeconfig(tmp_path)}"
        settings.write_text(settings.read_text().replace("load_incluster_config: true", file))
        given = open_store(tmp_path, {"MEMSTATE_STORE_URL": "s3://bucket/store"})
        found = engines(given, PODS)[-1]
        assert (found.ok, found.detail) == (True, f"{api.url} answers; runs are pods in namespace {NAMESPACE}")
        assert not engines(store, PODS)[-1].ok, "store.url is not set"
        assert "namespace elsewhere" in engines(given, {**PODS, NAMESPACE_VARIABLE: "elsewhere"})[-1].detail
        api.rules.clear()
        refused = engines(given, PODS)[-1]
        assert (refused.ok, "the Role of deploy/kubernetes.workers.yaml" in refused.detail) == (False, True)
    gone = engines(given, PODS)[-1]
    assert not gone.ok
    assert "does not answer" in gone.detail
    assert "refused" in gone.detail
    assert "a-token" not in gone.detail


def test_what_a_cluster_needs_is_named(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    (alone,) = engines(store, PODS)
    assert (alone.name, alone.ok, POSTGRES_VARIABLE in alone.detail) == ("kubernetes", True, True)
    dagster_home(store.home, {**DATABASE, **PODS})
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "dagster_k8s", None)
        assert engines(store, PODS)[-1].detail.endswith("pip install 'memstate[k8s]'")
    pytest.importorskip("dagster_k8s", reason="needs the extra k8s")
    lacks = engines(store, {**DATABASE, **PODS, NAMESPACE_VARIABLE: ""})[-1]
    assert (lacks.ok, lacks.detail) == (False, f"the environment variable {NAMESPACE_VARIABLE} is not set")
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    outside = engines(store, PODS)[-1]
    assert (outside.ok, outside.detail.startswith("this machine is no pod of a cluster: ")) == (False, True)


def test_the_settings_of_the_helm_chart_are_in_use(tmp_path: Path) -> None:
    pytest.importorskip("dagster_k8s", reason="needs the extra k8s")
    values = yaml.safe_load(helm_files()["helm.values.yaml"])
    with cluster() as api:
        settings = helm_chart.instance_settings(values, NAMESPACE)
        settings["run_launcher"]["config"] |= {
            "load_incluster_config": False,
            "kubeconfig_file": str(api.kubeconfig(tmp_path)),
        }
        folder = tmp_path / "chart"
        folder.mkdir()
        (folder / "dagster.yaml").write_text(yaml.safe_dump(settings))
        given = open_store(tmp_path, {"MEMSTATE_STORE_URL": "s3://bucket/store"})
        (found,) = engines(given, {"DAGSTER_HOME": str(folder)})
    assert (found.name, found.ok) == ("kubernetes", True), found
