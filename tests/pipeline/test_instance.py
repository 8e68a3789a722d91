"""The settings of Dagster's instance: written once, and replaced only where nobody edited them."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType, SimpleNamespace

import pytest
import yaml
from dagster._core.definitions.run_request import InstigatorType

from memstate_core.model.errors import HistoryUnreachable
from memstate_core.night.erasure.run_database import POSTGRES_VARIABLE
from memstate_core.state.home import Home
from memstate_pipeline.instance import dagster_home, dagster_instance
from memstate_pipeline.instance_settings import BROKER_VARIABLE, RESULTS_VARIABLE, missing
from memstate_pipeline.partitions import PARTITION_TAG
from memstate_pipeline.pod_settings import IMAGE_VARIABLE, NAMESPACE_VARIABLE
from tests.pipeline.conftest import run_memstate

OLD = """\
# Created by memstate; edit as you like.
telemetry:
  enabled: false
concurrency:
  pools:
    granularity: run
    default_limit: 1
"""
"""As version 0.1.0 first wrote them."""

RETRIES = f"""\
{OLD}run_retries: # of runs whose process died; runs that failed are not repeated
  enabled: true
  max_retries: 2
  retry_on_asset_or_op_failure: false
"""

MONITORED = f"""\
{RETRIES}run_monitoring: # ends runs that take longer than schedule.max_run_hours of memstate.toml
  enabled: true
  start_timeout_seconds: 600
  poll_interval_seconds: 60
"""

WITH_RETENTION = f"""\
{MONITORED}nux: # the dialog that asks for a mail address
  enabled: false
retention: # days that ticks are kept; retention.run_days of memstate.toml says how long runs are
  schedule:
    purge_after_days: 180
  sensor:
    purge_after_days: {{skipped: 2, success: 30, failure: 30, started: 30}}
"""
DATABASE = {POSTGRES_VARIABLE: "postgresql+psycopg2://memstate:a-password@db/memstate"}
WORKERS = {**DATABASE, **dict.fromkeys((BROKER_VARIABLE, RESULTS_VARIABLE), "redis://:a-password@broker/0")}

PODS = {**DATABASE, IMAGE_VARIABLE: "memstate:0.1.0", NAMESPACE_VARIABLE: "agents"}


def settings(home: Home, environ: Mapping[str, str] = MappingProxyType({})) -> str:
    return (dagster_home(home, environ) / "dagster.yaml").read_text()


def test_a_new_home_retries_runs_that_died_and_no_others(tmp_path: Path) -> None:
    written = yaml.safe_load(settings(Home(tmp_path)))
    assert written["run_retries"] == {"enabled": True, "max_retries": 2, "retry_on_asset_or_op_failure": False}
    assert written["run_monitoring"]["enabled"] is True
    assert written["telemetry"] == {"enabled": False}
    assert written["concurrency"] == {
        "runs": {"max_concurrent_runs": 1},
        "pools": {"granularity": "run", "default_limit": 1},
    }


def test_as_many_nights_run_at_once_as_the_settings_of_the_store_say(tmp_path: Path) -> None:
    home = Home(tmp_path)
    one = settings(home)
    for nights in (3, 12):
        (tmp_path / "memstate.toml").write_text(f"[store]\nnights_at_once = {nights}\n")
        written = yaml.safe_load(settings(home))
        assert written["concurrency"] == {
            "runs": {
                "max_concurrent_runs": nights,
                "tag_concurrency_limits": [
                    {"key": PARTITION_TAG, "value": {"applyLimitPerUniqueValue": True}, "limit": 1}
                ],
            },
            "pools": {"granularity": "run", "default_limit": nights},
        }
        assert {**written, "concurrency": None} == {**yaml.safe_load(one), "concurrency": None}
        with dagster_instance(home) as instance:
            assert instance.get_concurrency_config().run_queue_config.max_concurrent_runs == nights  # type: ignore[union-attr]
    assert yaml.safe_load(settings(home, DATABASE))["concurrency"]["pools"]["default_limit"] == 12
    edited = settings(home, DATABASE) + "# mine\n"
    (home.dagster / "dagster.yaml").write_text(edited)
    (tmp_path / "memstate.toml").write_text("")
    assert settings(home, DATABASE) == edited
    (home.dagster / "dagster.yaml").write_text(edited.removesuffix("# mine\n"))
    assert run_memstate(tmp_path, "init", "--json", **DATABASE).code == 0
    assert yaml.safe_load(settings(home, DATABASE))["concurrency"]["runs"] == {"max_concurrent_runs": 1}
    (tmp_path / "memstate.toml").write_text("[store]\nnights_at_once = 0\n")
    assert settings(Home(tmp_path)) == settings(home, DATABASE), "settings that are not allowed change nothing"


def test_no_dialog_asks_for_a_mail_address_and_ticks_are_not_kept_for_ever(tmp_path: Path) -> None:
    with dagster_instance(Home(tmp_path)) as instance:
        assert not instance.nux_enabled
        assert not instance.telemetry_enabled
        for kind in (InstigatorType.SCHEDULE, InstigatorType.SENSOR):
            assert all(days > 0 for days in instance.get_tick_retention_settings(kind).values())


@pytest.mark.parametrize(
    ("kept", "replaced"),
    [*((each, True) for each in (OLD, RETRIES, MONITORED, WITH_RETENTION)), (OLD + "# mine\n", False), ("", False)],
)
def test_settings_of_an_older_version_are_replaced_unless_edited(tmp_path: Path, kept: str, replaced: bool) -> None:
    home = Home(tmp_path)
    home.dagster.mkdir(parents=True)
    (home.dagster / "dagster.yaml").write_text(kept)
    assert (settings(home) != kept) == replaced


def test_the_environment_adds_a_database_and_workers_by_name_and_takes_nothing_back(tmp_path: Path) -> None:
    home = Home(tmp_path)
    local, database = settings(home), settings(home, DATABASE)
    for environ in ({}, DATABASE, {**WORKERS, RESULTS_VARIABLE: ""}):
        assert settings(home, environ) == database
    workers = settings(home, WORKERS)
    assert (settings(home), settings(home, DATABASE)) == (workers, workers)
    assert yaml.safe_load(database) == {
        **yaml.safe_load(local),
        "storage": {"postgres": {"postgres_url": {"env": POSTGRES_VARIABLE}}},
    }
    launcher = yaml.safe_load(workers)["run_launcher"]
    assert launcher["config"] == {"broker": {"env": BROKER_VARIABLE}, "backend": {"env": RESULTS_VARIABLE}}
    assert "a-password" not in workers
    assert settings(Home(tmp_path / "no history"), {**WORKERS, POSTGRES_VARIABLE: ""}) == local


def test_the_environment_adds_pods_in_place_of_workers_and_takes_nothing_back(tmp_path: Path) -> None:
    home = Home(tmp_path)
    database, workers = settings(home, DATABASE), settings(Home(tmp_path / "workers"), WORKERS)
    for name in (IMAGE_VARIABLE, NAMESPACE_VARIABLE, POSTGRES_VARIABLE):
        assert settings(home, {**PODS, name: ""}) == database
    pods = settings(home, {**WORKERS, **PODS})
    assert settings(Home(tmp_path / "workers"), PODS) == pods != workers
    assert (settings(home), settings(home, WORKERS)) == (pods, pods)
    launcher = yaml.safe_load(pods)["run_launcher"]
    assert (launcher["class"], launcher["config"]["job_image"]) == ("K8sRunLauncher", {"env": IMAGE_VARIABLE})
    assert launcher["config"]["job_namespace"] == {"env": NAMESPACE_VARIABLE}
    (tmp_path / "memstate.toml").write_text("[store]\nnights_at_once = 3\n")
    several = yaml.safe_load(settings(home, PODS))
    assert (several["concurrency"]["pools"]["default_limit"], several["run_launcher"]) == (3, launcher)
    assert missing([IMAGE_VARIABLE], {}) == f"the environment variable {IMAGE_VARIABLE} is not set"


def test_settings_that_were_edited_stay_whatever_the_environment_names(tmp_path: Path) -> None:
    home = Home(tmp_path)
    edited = settings(home) + "# mine\n"
    (home.dagster / "dagster.yaml").write_text(edited)
    assert settings(home, WORKERS) == edited
    assert run_memstate(tmp_path, "init", "--json", **WORKERS).code == 0
    assert settings(home) == edited


def test_a_variable_that_the_settings_name_and_is_not_set_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(POSTGRES_VARIABLE, raising=False)
    settings(Home(tmp_path), DATABASE)
    with pytest.raises(HistoryUnreachable, match=f"{POSTGRES_VARIABLE} is not set"), dagster_instance(Home(tmp_path)):
        pass


def test_what_a_machine_lacks_is_named_without_the_password(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [POSTGRES_VARIABLE, BROKER_VARIABLE, RESULTS_VARIABLE]
    for module in ("dagster_postgres", "dagster_celery"):
        monkeypatch.setitem(sys.modules, module, None)
    assert missing([], {}) is None
    for name in names:
        assert missing([name], {**WORKERS, name: ""}) == f"the environment variable {name} is not set"
        assert str(missing([name], WORKERS)).endswith("pip install 'memstate[cluster]'")
    for module in ("dagster_postgres", "dagster_celery"):
        monkeypatch.setitem(sys.modules, module, SimpleNamespace(__spec__=module))
    assert missing(names, WORKERS) is None
    bare = {POSTGRES_VARIABLE: "postgresql://memstate:a-password@db/memstate"}
    assert missing(names, bare) == f"${POSTGRES_VARIABLE} does not begin with postgresql+psycopg2://"
