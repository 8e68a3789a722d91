"""The weekly verification: a schedule of its own, a run that succeeds on a sound store and fails on a damaged one."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from memstate_core.model.text import parse_moment
from memstate_core.run.store import Store, open_store
from memstate_core.state.current import current_snapshot
from memstate_pipeline.definitions import build_defs
from memstate_pipeline.instance import dagster_instance
from memstate_pipeline.jobs import VERIFY_STORE
from memstate_pipeline.run import maintain
from tests.pipeline.conftest import NIGHT

pytestmark = pytest.mark.usefixtures("no_settings")


def verify(store: Store) -> dg.ExecuteInProcessResult:
    with dagster_instance(store.home) as instance:
        job = build_defs(store.home.root).resolve_job_def(VERIFY_STORE)
        return job.execute_in_process(instance=instance, raise_on_error=False)


def test_the_schedule_is_weekly_and_on(tmp_path: Path) -> None:
    schedule = build_defs(tmp_path).resolve_schedule_def("weekly_verify")
    assert (schedule.cron_schedule, schedule.job_name) == ("0 5 * * sun", VERIFY_STORE)
    assert schedule.default_status is dg.DefaultScheduleStatus.RUNNING


def test_an_empty_setting_switches_it_off(tmp_path: Path) -> None:
    (tmp_path / "memstate.toml").write_text('[schedule]\nverify_cron = ""\n')
    schedules = build_defs(tmp_path).schedules or []
    assert [schedule.name for schedule in schedules] == ["nightly", "retention", "compaction"]


@pytest.mark.slow
def test_a_run_says_whether_the_store_is_sound(tmp_path: Path) -> None:
    store = open_store(tmp_path / "home")
    store.home.inbox.mkdir(parents=True)
    (store.home.inbox / "rows.jsonl").write_text('{"text": "The yard is open."}\n')
    assert verify(store).success, "nothing is published yet"
    maintain(store, parse_moment(NIGHT))
    assert verify(store).success
    snapshot = current_snapshot(store.home, "s0")
    assert snapshot is not None
    with (snapshot.path / "topics.parquet").open("ab") as file:
        file.write(b"x")
    damaged = verify(store)
    (failure,) = (event for event in damaged.all_events if event.is_step_failure)
    raised = failure.step_failure_data.user_failure_data
    assert not damaged.success
    assert raised is not None
    assert "topics.parquet" in str(raised.metadata["failed"].value)
