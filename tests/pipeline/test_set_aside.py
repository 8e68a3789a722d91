"""A row that no step can digest: the night goes on without it, by the command line and through Dagster."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import dagster as dg
import polars as pl
import pytest
from msgspec import structs
from polars.testing import assert_frame_equal

from memstate_core.ingest.importer import import_paths
from memstate_core.model.errors import PlanStale, StoreLocked
from memstate_core.model.text import parse_moment
from memstate_core.night.clone import cloned
from memstate_core.night.plan_file import read_plan, sealed, write_plan
from memstate_core.night.verify import verify_store
from memstate_core.run import apply
from memstate_core.run.store import Store, open_store
from memstate_core.state.current import current_snapshot
from memstate_pipeline.definitions import build_defs
from memstate_pipeline.instance import dagster_instance
from memstate_pipeline.jobs import NIGHTLY
from memstate_pipeline.planning import apply_plan, plan_on
from memstate_pipeline.resources import NOW_TAG
from memstate_pipeline.run import maintain
from tests.pipeline.conftest import NIGHT, run_memstate

ROWS = [
    {
        "topic_key": f"k{n}",
        "title": f"Topic {n}",
        "summary": "poison" if n == 2 else "plain",
        "observed_at": "2026-01-01",
    }
    for n in range(5)
]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = open_store(tmp_path / "home")
    dump = tmp_path / "dump.jsonl"
    dump.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    import_paths(store.ledger, store.settings, [dump], now=parse_moment(NIGHT), run_id="import")
    return store


def titles(store: Store) -> list[str]:
    exported = run_memstate(store.home.root, "export", "--json").document["topics"]
    return sorted(topic["title"] for topic in exported)


def poisoned(error: Exception) -> Any:
    """A fold that raises an error where the poisoned row is in the evidence."""
    fold = apply.fold

    def fail(evidence: pl.DataFrame, *rest: Any) -> Any:
        if (evidence["summary"] == "poison").any():
            raise error
        return fold(evidence, *rest)

    return fail


@pytest.mark.slow
@pytest.mark.usefixtures("no_settings")
def test_a_night_publishes_without_the_row_that_breaks_a_step(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(apply, "fold", poisoned(OverflowError("a value too large for this machine")))
        done = maintain(store, parse_moment(NIGHT))
    assert done.summary["snapshot"] == "s0/1"
    assert titles(store) == ["Topic 0", "Topic 1", "Topic 3", "Topic 4"]
    [refused] = store.ledger.scan("quarantine").collect().to_dicts()
    assert refused["reason"] == "set_aside"
    assert "step topics failed with it: OverflowError: a value too large for this machine" in refused["detail"]
    assert all(verdict.passed for verdicts in verify_store(store).values() for verdict in verdicts)

    served = current_snapshot(store.home, "s0")
    assert served is not None
    rebuilt = run_memstate(store.home.root, "rebuild", "--json")
    assert rebuilt.code == 0, rebuilt.stderr
    again = current_snapshot(store.home, "s0")
    assert again is not None
    assert again.manifest.state_hash == served.manifest.state_hash

    [row] = store.ledger.scan("transitions").filter(pl.col("kind") == "set_aside").collect().to_dicts()
    undone = run_memstate(store.home.root, "undo", row["evidence_ids"][0], "--json")
    assert undone.code == 0, undone.stderr
    assert undone.document["action"] == "readmitted"
    assert titles(store) == [f"Topic {n}" for n in range(5)]
    assert run_memstate(store.home.root, "verify").code == 0


# By a plan


def changed(path: Path, to: Path, evidence_id: str) -> Path:
    """A plan that sets another row aside, under a hash that fits."""
    plan = read_plan(path)
    own = [structs.replace(each, evidence_ids=[evidence_id]) for each in plan.actions if each.kind == "set_aside"]
    write_plan(sealed(structs.replace(plan, actions=[*own, *plan.actions[len(own) :]])), to)
    return to


@pytest.mark.slow
@pytest.mark.usefixtures("no_settings")
def test_a_plan_that_sets_a_row_aside_is_applied_in_one_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(tmp_path / "home")
    store.home.inbox.mkdir(parents=True)
    (store.home.inbox / "dump.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    by_night, by_changed_plan = (open_store(tmp_path / name) for name in ("night", "changed"))
    for other in (by_night, by_changed_plan):
        shutil.copytree(store.home.root, other.home.root)
    path = tmp_path / "plan.json"
    monkeypatch.setattr(apply, "fold", poisoned(OverflowError("a value too large for this machine")))
    with cloned(store) as clone:
        write_plan(plan_on(clone, parse_moment(NIGHT)), path)
    assert read_plan(path).summary["set_aside"] == 1

    done = apply_plan(store, path)
    assert done.summary["snapshot"] == "s0/1"
    maintain(by_night, parse_moment(NIGHT))
    served, expected = (current_snapshot(each.home, "s0") for each in (store, by_night))
    assert served is not None
    assert expected is not None
    assert served.manifest.state_hash == expected.manifest.state_hash
    listed, also = (each.ledger.scan("quarantine").drop("run_id").collect() for each in (store, by_night))
    assert listed["reason"].to_list() == ["set_aside"]
    assert_frame_equal(listed, also)

    with pytest.raises(PlanStale, match="evidence 0000 to set aside"):
        apply_plan(by_changed_plan, changed(path, tmp_path / "changed.json", "0000"))
    assert current_snapshot(by_changed_plan.home, "s0") is None


# Through Dagster


def ended(store: Store, patch: pytest.MonkeyPatch, error: Exception) -> tuple[Any, dg.ExecuteInProcessResult]:
    """A run of the schedule that fails, and what the sensor makes of it."""
    definitions = build_defs(store.home.root)
    job = definitions.resolve_job_def(NIGHTLY)
    sensor = definitions.get_repository_def().get_sensor_def("set_aside")
    with patch.context() as within, dagster_instance(store.home) as instance:
        within.setattr(apply, "fold", poisoned(error))
        failed = job.execute_in_process(
            partition_key="s0", instance=instance, tags={NOW_TAG: NIGHT}, raise_on_error=False
        )
        (event,) = [each for each in failed.all_events if each.event_type is dg.DagsterEventType.RUN_FAILURE]
        context = dg.build_run_status_sensor_context(
            sensor_name="set_aside", dagster_event=event, dagster_instance=instance, dagster_run=failed.dagster_run
        )
        return sensor(context.for_run_failure()), failed


@pytest.mark.slow
@pytest.mark.usefixtures("no_settings")
def test_a_run_that_set_evidence_aside_is_run_again_at_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    again, failed = ended(store, monkeypatch, OverflowError("a value too large for this machine"))
    assert isinstance(again, dg.RunRequest)
    assert again.run_key == f"without/{failed.run_id}"
    assert (again.partition_key, again.tags[NOW_TAG]) == ("s0", NIGHT)
    assert maintain(store, parse_moment(again.tags[NOW_TAG])).summary["snapshot"] == "s0/1"
    assert len(titles(store)) == 4


@pytest.mark.slow
@pytest.mark.usefixtures("no_settings")
def test_a_run_that_failed_for_another_reason_is_not_run_again(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    skipped, _ = ended(store, monkeypatch, StoreLocked(str(store.home.root), "process 7"))
    assert isinstance(skipped, dg.SkipReason)
    assert "StoreLocked" in str(skipped.skip_message)
