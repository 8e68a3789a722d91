"""`memstate doctor` examines database and broker where the environment or Dagster's settings name them."""

from __future__ import annotations

from pathlib import Path

import pytest

from memstate_core.night.erasure.run_database import POSTGRES_VARIABLE
from memstate_core.run.store import Store, open_store
from memstate_pipeline.doctor.engines import engines
from memstate_pipeline.instance import dagster_home
from memstate_pipeline.instance_settings import BROKER_VARIABLE, RESULTS_VARIABLE
from tests.pipeline.engines import free_port

DATABASE = {POSTGRES_VARIABLE: "postgresql+psycopg2://memstate:a-password@127.0.0.1:{port}/memstate"}
BROKER = dict.fromkeys((BROKER_VARIABLE, RESULTS_VARIABLE), "redis://:a-password@127.0.0.1:{port}/0")


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
