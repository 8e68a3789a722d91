"""Nights as pods: what Dagster makes of the written settings, and of the values of its Helm chart, is what we mean."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml
from dagster._core.code_pointer import ModuleCodePointer
from dagster._core.launcher import LaunchRunContext
from dagster._core.origin import JobPythonOrigin, RepositoryPythonOrigin

from memstate_core import __version__
from memstate_core.night.erasure.run_database import POSTGRES_VARIABLE
from memstate_core.policy.settings import load_settings
from memstate_core.state.home import Home
from memstate_pipeline.deploy.containers import container_files
from memstate_pipeline.deploy.helm import helm_files
from memstate_pipeline.instance import dagster_home
from memstate_pipeline.instance_settings import dagster_settings
from memstate_pipeline.pod_settings import IMAGE_VARIABLE, NAMESPACE_VARIABLE
from tests.pipeline.deploy import helm_chart
from tests.pipeline.deploy.test_replicas import containers, parsed, pods
from tests.pipeline.kubernetes_api import NAMESPACE, Cluster, cluster, manifests

pytest.importorskip("dagster_k8s", reason="needs the extra k8s")
CHOSEN = {
    POSTGRES_VARIABLE: "postgresql+psycopg2://memstate:a-password@db:5432/memstate",
    IMAGE_VARIABLE: f"memstate:{__version__}",
    NAMESPACE_VARIABLE: NAMESPACE,
}
VERSIONS = ("1.31", "latest")


def validated(document: Any) -> Any:
    """An object that two versions of Kubernetes allow."""
    schemas = pytest.importorskip("kubernetes_validate")
    for version in VERSIONS:
        schemas.validate(document, schemas.latest_version() if version == "latest" else version, strict=True)
    return document


@pytest.fixture(scope="module")
def values() -> Any:
    return yaml.safe_load(helm_files()["helm.values.yaml"])


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    for name, value in CHOSEN.items():
        monkeypatch.setenv(name, value)
    with cluster() as found:
        yield found


def launched(settings: dict[str, Any], api: Cluster, folder: Path, image: str | None = None) -> Any:
    """The job that Dagster makes of a run, with these settings; its history is in SQLite, the API that of the test.

    A server of the definitions names its own image, as the chart has it do.
    """
    settings["run_launcher"]["config"] |= {
        "load_incluster_config": False,
        "kubeconfig_file": str(api.kubeconfig(folder)),
    }
    settings.pop("storage", None)
    (folder / "dagster.yaml").write_text(yaml.safe_dump(settings))
    pointer = ModuleCodePointer("memstate_pipeline.definitions", "defs", None)
    repository = RepositoryPythonOrigin("python", pointer, image, ["dagster"], None)
    with dg.DagsterInstance.from_config(str(folder)) as instance:
        run = dg.DagsterRun("nightly", run_id="a" * 8, job_code_origin=JobPythonOrigin("nightly", repository))
        instance.add_run(run)
        assert type(instance.run_coordinator).__name__ == "QueuedRunCoordinator"
        assert instance.get_concurrency_config().run_queue_config.max_concurrent_runs == 1  # type: ignore[union-attr]
        assert instance.run_retries_max_retries == 2
        instance.run_launcher.launch_run(LaunchRunContext(dagster_run=run, workspace=None))
        assert instance.run_launcher.check_run_worker_health(run).status.value == "RUNNING"
    assert api.denied == []
    (job,) = api.jobs.values()
    return validated({name: part for name, part in job.items() if name != "status"})


def test_the_written_settings_are_those_of_the_manifests_and_make_pods(api: Cluster, tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    written = (dagster_home(home) / "dagster.yaml").read_text()
    assert manifests()["ConfigMap", "memstate-dagster"]["data"]["dagster.yaml"] == written
    assert "a-password" not in written
    job = launched(yaml.safe_load(written), api, tmp_path)
    pod = job["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert (container["image"], container["args"][:3]) == (CHOSEN[IMAGE_VARIABLE], ["dagster", "api", "execute_run"])
    assert not any("a-password" in argument for argument in container["args"])
    assert container["envFrom"] == [{"configMapRef": {"name": "memstate"}}, {"secretRef": {"name": "memstate"}}]
    assert {"name": "DAGSTER_HOME", "value": "/data/dagster"} in container["env"]
    assert set(container["resources"]) == {"requests", "limits"}
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert pod["securityContext"] | {"runAsNonRoot": True, "runAsUser": 1000} == pod["securityContext"]
    assert (pod["serviceAccountName"], pod["automountServiceAccountToken"]) == ("memstate-run", False)
    assert {each["name"] for each in container["volumeMounts"]} == {each["name"] for each in pod["volumes"]}
    assert (job["spec"]["backoffLimit"], job["spec"]["ttlSecondsAfterFinished"]) == (0, 86400)
    assert pod["restartPolicy"] == "Never"
    (checkout,) = [each for each in pod["volumes"] if "ephemeral" in each]
    assert checkout["ephemeral"]["volumeClaimTemplate"]["spec"]["resources"]["requests"]["storage"] == "20Gi"


def test_the_chart_makes_the_same_pods(api: Cluster, values: Any, tmp_path: Path) -> None:
    of_chart = launched(helm_chart.instance_settings(values, NAMESPACE), api, tmp_path, CHOSEN[IMAGE_VARIABLE])
    api.jobs.clear()
    folder = tmp_path / "second"
    folder.mkdir()
    ours = launched(yaml.safe_load(dagster_settings(CHOSEN)), api, folder)
    pod, own = of_chart["spec"]["template"]["spec"], ours["spec"]["template"]["spec"]
    (password,) = [each for each in pod["containers"][0]["env"] if each["name"] == "DAGSTER_PG_PASSWORD"]
    assert password["valueFrom"]["secretKeyRef"] == {"name": "memstate", "key": "postgresql-password"}
    pod["containers"][0]["env"].remove(password)
    for each in (pod, own):
        each["containers"][0].pop("args")
        each["serviceAccountName"] = ""
    assert pod == own
    assert of_chart["spec"] | {"template": None} == ours["spec"] | {"template": None}


def test_the_chart_takes_the_keys_and_its_database_is_that_of_the_secret(values: Any) -> None:
    for path, known in helm_chart.KEYS.items():
        given = set(helm_chart.section(values, path))
        assert given <= known, f"{path}: {given - known}"
    from dagster_postgres.utils import pg_url_from_config

    config = helm_chart.database(values)
    config["postgres_db"]["password"] = "p"
    assert pg_url_from_config(config) == "postgresql://memstate:p@database.example.com:5432/memstate"
    assert not values["postgresql"]["enabled"]
    assert not values["generatePostgresqlPasswordSecret"]
    (code,) = values["dagster-user-deployments"]["deployments"]
    assert code["dagsterApiGrpcArgs"] == container_files_command("daemon")[2:4]
    assert not code["includeConfigInLaunchedRuns"]["enabled"]


def container_files_command(name: str) -> list[str]:
    """The command of a service of `compose.yaml`."""
    found: list[str] = yaml.safe_load(container_files()["compose.yaml"])["services"][name]["command"]
    return found


def test_pods_of_the_chart_are_allowed_and_have_all_that_they_mount(values: Any) -> None:
    (code,) = values["dagster-user-deployments"]["deployments"]
    for part in (values["dagsterWebserver"], values["dagsterDaemon"], code):
        spec = validated(helm_chart.pod(values, part))["spec"]
        (container,) = spec["containers"]
        mounts = [each["mountPath"] for each in container["volumeMounts"]]
        assert len(set(mounts)) == len(mounts)
        assert {each["name"] for each in container["volumeMounts"]} == {each["name"] for each in spec["volumes"]}
        assert container["image"] == f"memstate:{__version__}"
    server = values["dagsterWebserver"]
    assert server["readinessProbe"]["httpGet"]["port"] == server["service"]["port"]


def test_manifests_are_allowed_and_name_each_other() -> None:
    found = manifests()
    for each in found.values():
        validated(each)
    labels = {each["metadata"]["name"]: template["metadata"]["labels"] for each, template in pods(found)}
    assert set(labels) == {"memstate-dagster", "memstate-replica"}
    for name, own in labels.items():
        assert found["Deployment", name]["spec"]["selector"]["matchLabels"] == own
    assert found["Service", "memstate-replica"]["spec"]["selector"] == labels["memstate-replica"]
    binding = found["RoleBinding", "memstate-dagster"]
    assert ("Role", binding["roleRef"]["name"]) in found
    for subject in binding["subjects"]:
        assert (subject["kind"], subject["name"]) in found
    dagster = found["Deployment", "memstate-dagster"]["spec"]
    assert (dagster["replicas"], dagster["strategy"]) == (1, {"type": "Recreate"})
    assert ("ServiceAccount", dagster["template"]["spec"]["serviceAccountName"]) in found
    run = yaml.safe_load(found["ConfigMap", "memstate-dagster"]["data"]["dagster.yaml"])["run_launcher"]["config"]
    assert ("ServiceAccount", run["service_account_name"]) in found
    assert {("ConfigMap", name) for name in [*run["env_config_maps"], run["instance_config_map"]]} <= set(found)
    assert not any(kind == "Secret" for kind, _ in found)


def test_pods_of_the_manifests_have_all_that_they_mount_and_run_commands_that_exist(tmp_path: Path) -> None:
    found = manifests()
    for _, template in pods(found):
        spec, names = template["spec"], set[str]()
        for container in (*spec.get("initContainers", []), *spec["containers"]):
            names |= {mount["name"] for mount in container["volumeMounts"]}
            assert container["image"] == f"memstate:{__version__}"
            assert container["securityContext"]["readOnlyRootFilesystem"]
        assert names == {volume["name"] for volume in spec["volumes"]}
        assert spec["securityContext"]["runAsNonRoot"]
    commands = {each["name"]: each["command"] for each in containers(found)}
    assert commands["daemon"] == container_files_command("daemon")
    assert [each.replace("127.0.0.1", "0.0.0.0") for each in commands["webserver"]] == container_files_command(
        "webserver"
    )
    assert commands["init"][2].endswith("exec memstate init")
    assert parsed(commands["replica"])["accept_writes"]
    data = found["ConfigMap", "memstate"]["data"]
    settings = load_settings(tmp_path, {name: text for name, text in data.items() if name.startswith("MEMSTATE_")})
    assert settings.store.url != settings.publish.url
    assert (settings.publish.accept_writes, settings.store.nights_at_once) == (True, 1)
    assert data[IMAGE_VARIABLE] == f"memstate:{__version__}"


@pytest.mark.skipif(shutil.which("helm") is None, reason="needs helm, and the repository of Dagster's chart")
def test_helm_renders_the_chart(tmp_path: Path) -> None:
    values = tmp_path / "values.yaml"
    values.write_text(helm_files()["helm.values.yaml"])
    if subprocess.run(["helm", "show", "chart", "dagster/dagster"], capture_output=True, check=False).returncode:
        pytest.skip("the repository of Dagster's chart is not there: helm repo add dagster …")
    command = ["helm", "template", "dagster", "dagster/dagster", "--version", dg.__version__, "--values", str(values)]
    rendered = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for each in filter(None, yaml.safe_load_all(re.sub(r"^---$", "---", rendered))):
        validated(each)
