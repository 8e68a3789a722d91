"""Assets that are materialized on their own, as the pages of the UI allow: never on what another run left."""

from __future__ import annotations

import json
from pathlib import Path

import dagster as dg
import pytest

from memstate_core.model.text import parse_moment
from memstate_core.run.begin import begin_run
from memstate_core.run.store import Store, open_store
from memstate_core.state.current import current_number
from memstate_pipeline.definitions import build_defs
from memstate_pipeline.nights import ASSET_JOB, NIGHTLY, is_night
from memstate_pipeline.resources import NOW_TAG
from tests.pipeline.conftest import NIGHT

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_settings")]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    opened = open_store(tmp_path / "home")
    opened.home.inbox.mkdir(parents=True)
    (opened.home.inbox / "one.jsonl").write_text(json.dumps({"title": "Yard", "observed_at": "2026-01-01"}))
    return opened


def materialized(store: Store, instance: dg.DagsterInstance, *assets: str) -> dg.ExecuteInProcessResult:
    """What a run of Dagster's own job for these assets did; without any, of all."""
    job = build_defs(store.home.root).resolve_implicit_global_asset_job_def()
    return job.execute_in_process(
        instance=instance,
        partition_key="s0",
        tags={NOW_TAG: NIGHT},
        asset_selection=[dg.AssetKey(name) for name in assets] or None,
        raise_on_error=False,
    )


def problem(done: dg.ExecuteInProcessResult) -> str:
    """The name and message of the error in which a run's only step failed."""
    (failed,) = [event for event in done.all_events if event.is_step_failure]
    error = failed.step_failure_data.error
    while error is not None and error.cause is not None:
        error = error.cause
    assert error is not None
    return f"{error.cls_name}: {error.message}"


def test_a_single_asset_is_refused_without_its_run_and_on_what_another_run_left(store: Store) -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        assert problem(materialized(store, instance, "topics")).startswith("StagingMissing:")
        begin_run(store, "s0", "killed", parse_moment(NIGHT))
        left = {path: path.read_bytes() for path in store.home.work("s0").rglob("*") if path.is_file()}
        for asset in ("topics", "snapshot"):
            refused = problem(materialized(store, instance, asset))
            assert refused.startswith("StagingOfAnotherRun:")
            assert "belongs to run killed" in refused
            assert "Start the whole nightly_maintenance job" in refused
        assert left == {path: path.read_bytes() for path in left}
        assert current_number(store.home, "s0") is None


def test_all_assets_from_their_pages_are_a_night_in_one_process(store: Store) -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        begin_run(store, "s0", "killed", parse_moment(NIGHT))
        done = materialized(store, instance)
        assert done.success
        assert is_night(done.dagster_run)
        assert not is_night(materialized(store, instance, "topics").dagster_run)
    job = build_defs(store.home.root).resolve_implicit_global_asset_job_def()
    assert (job.name, job.executor_def.name) == (ASSET_JOB, dg.in_process_executor.name)


def test_what_repeats_a_night_repeats_all_of_it(store: Store) -> None:
    assert build_defs(store.home.root).resolve_job_def(NIGHTLY).tags["dagster/retry_strategy"] == "ALL_STEPS"
