"""The settings of Dagster's instance: written once, and replaced only where nobody edited them."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from dagster._core.definitions.run_request import InstigatorType

from memstate_core.state.home import Home
from memstate_pipeline.instance import dagster_home, dagster_instance

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


def settings(home: Home) -> str:
    return (dagster_home(home, {}) / "dagster.yaml").read_text()


def test_a_new_home_retries_runs_that_died_and_no_others(tmp_path: Path) -> None:
    written = yaml.safe_load(settings(Home(tmp_path)))
    assert written["run_retries"] == {"enabled": True, "max_retries": 2, "retry_on_asset_or_op_failure": False}
    assert written["run_monitoring"]["enabled"] is True
    assert written["telemetry"] == {"enabled": False}
    assert written["concurrency"] == {"pools": {"granularity": "run", "default_limit": 1}}


def test_no_dialog_asks_for_a_mail_address_and_ticks_are_not_kept_for_ever(tmp_path: Path) -> None:
    with dagster_instance(Home(tmp_path)) as instance:
        assert not instance.nux_enabled
        assert not instance.telemetry_enabled
        for kind in (InstigatorType.SCHEDULE, InstigatorType.SENSOR):
            assert all(days > 0 for days in instance.get_tick_retention_settings(kind).values())


@pytest.mark.parametrize(
    ("kept", "replaced"), [(OLD, True), (RETRIES, True), (MONITORED, True), (OLD + "# mine\n", False), ("", False)]
)
def test_settings_of_an_older_version_are_replaced_unless_edited(tmp_path: Path, kept: str, replaced: bool) -> None:
    home = Home(tmp_path)
    home.dagster.mkdir(parents=True)
    (home.dagster / "dagster.yaml").write_text(kept)
    assert (settings(home) != kept) == replaced
