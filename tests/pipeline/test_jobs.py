"""The daemon ends a run that takes too long, and marks it as failed, so that later nights begin."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
import pytest
from dagster._daemon.monitoring.run_monitoring import check_run_timeout  # what the daemon calls for each run

from memstate_core.state.home import Home
from memstate_pipeline.definitions import build_defs
from memstate_pipeline.instance import dagster_instance
from memstate_pipeline.nights import MAX_RUNTIME_TAG

JOBS = ("nightly_maintenance", "import_inbox", "verify_store", "retention", "compaction")
BEGAN = datetime(2026, 4, 1, 2, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("settings", "seconds"), [("", "86400"), ("max_run_hours = 0.5", "1800"), ("max_run_hours = 0", "0")]
)
def test_every_job_has_the_limit_of_the_settings(tmp_path: Path, settings: str, seconds: str) -> None:
    (tmp_path / "memstate.toml").write_text(f"[schedule]\n{settings}\n")
    defs = build_defs(tmp_path)
    assert {defs.resolve_job_def(name).tags[MAX_RUNTIME_TAG] for name in JOBS} == {seconds}


@pytest.mark.parametrize(
    ("tags", "ends"), [({}, True), ({MAX_RUNTIME_TAG: "0"}, False)], ids=["daemon", "command line"]
)
def test_a_run_that_takes_too_long_is_ended_by_the_daemon(tmp_path: Path, tags: dict[str, str], ends: bool) -> None:
    job = build_defs(tmp_path).resolve_job_def("verify_store")
    with dagster_instance(Home(tmp_path)) as instance:
        assert instance.run_monitoring_enabled
        run = instance.create_run_for_job(job, status=dg.DagsterRunStatus.STARTED, tags={**job.tags, **tags})
        (record,) = instance.get_run_records(dg.RunsFilter(run_ids=[run.run_id]))
        began = dg.RunRecord(
            storage_id=record.storage_id, dagster_run=record.dagster_run, create_timestamp=record.create_timestamp,
            update_timestamp=record.update_timestamp, start_time=BEGAN,
        )  # fmt: skip
        check_run_timeout(instance, began, logging.getLogger(), float(instance.run_monitoring_max_runtime_seconds))
        found = instance.get_run_by_id(run.run_id)
    assert found is not None
    assert (found.status == dg.DagsterRunStatus.FAILURE) == ends
