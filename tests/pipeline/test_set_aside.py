"""A row that no step, check or report can digest: the night goes on, by the command line and through Dagster."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import dagster as dg
import polars as pl
import pytest
from msgspec import structs
from polars.testing import assert_frame_equal

from memstate_core.forget import bound
from memstate_core.ingest.importer import import_paths
from memstate_core.model.errors import PlanStale, StoreLocked
from memstate_core.model.text import parse_moment
from memstate_core.night.checks import suite
from memstate_core.night.clone import cloned
from memstate_core.night.plan_file import read_plan, sealed, write_plan
from memstate_core.night.verify import verify_store
from memstate_core.run import begin
from memstate_core.run.store import Store, open_store
from memstate_core.state.current import current_snapshot
from memstate_pipeline.definitions import build_defs
from memstate_pipeline.instance import dagster_instance
from memstate_pipeline.nights import NIGHTLY
from memstate_pipeline.planning import apply_plan, plan_on
from memstate_pipeline.report import collect
from memstate_pipeline.resources import NOW_TAG
from memstate_pipeline.run import maintain
from tests.core.failing_folds import break_folds
from tests.pipeline.conftest import NIGHT, run_memstate

ROWS = [
    {
        "topic_key": f"k{n}",
        "title": f"Topic {n}",
        "summary": "poison" if n == 2 else "plain",
        "observed_at": "2026-01-01",
        "scope": {"type": "user", "id": "poison" if n == 2 else "plain"},
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


def poison(patch: pytest.MonkeyPatch, error: Exception) -> None:
    """Makes folds raise an error where the poisoned row is in the evidence."""
    break_folds(patch, lambda evidence, *_: bool((evidence["summary"] == "poison").any()), error)


@pytest.mark.slow
@pytest.mark.usefixtures("no_settings")
def test_a_night_publishes_without_the_row_that_breaks_a_step(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        poison(patch, OverflowError("a value too large for this machine"))
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


# Outside the steps that change the graph

Scopes = Callable[[tuple[Any, ...], Any], pl.Series]
CONDITIONS = (suite, "provenance", lambda given, _: given[0].recorded.evidence["scope"])
OTHERS: dict[str, tuple[ModuleType, str, Scopes]] = {
    "evidence": (begin, "shard_evidence", lambda _, result: result["scope"]),
    "pins_within_bound": (bound, "over_bound", lambda given, _: given[0]["scope"]),
}


def failing(patch: pytest.MonkeyPatch, module: ModuleType, name: str, scopes: Scopes) -> None:
    """A function that raises an error where the scope of the poisoned row is in the frame that it works on."""
    sound = getattr(module, name)

    def fail(*given: Any) -> Any:
        result = sound(*given)
        if "user:poison" in scopes(given, result):
            raise OverflowError("a value too large for this machine")
        return result

    patch.setattr(module, name, fail)


def require_published_without_the_row(store: Store, step: str) -> None:
    assert titles(store) == ["Topic 0", "Topic 1", "Topic 3", "Topic 4"]
    [refused] = store.ledger.scan("quarantine").collect().to_dicts()
    assert refused["reason"] == "set_aside"
    assert f"step {step} failed with it: OverflowError: a value too large for this machine" in refused["detail"]
    assert json.loads(refused["raw"])["title"] == "Topic 2"
    assert all(verdict.passed for verdicts in verify_store(store).values() for verdict in verdicts)


@pytest.mark.slow
@pytest.mark.usefixtures("no_settings")
@pytest.mark.parametrize("step", OTHERS)
def test_a_night_publishes_without_the_row_that_breaks_its_first_step_or_a_warning(
    store: Store, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    with monkeypatch.context() as patch:
        failing(patch, *OTHERS[step])
        assert maintain(store, parse_moment(NIGHT)).summary["snapshot"] == "s0/1"
    require_published_without_the_row(store, step)


@pytest.mark.slow
@pytest.mark.usefixtures("no_settings")
def test_a_run_whose_condition_breaks_on_a_row_is_run_again_without_it(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        failing(patch, *CONDITIONS)
        again, _ = ended(store)
        assert isinstance(again, dg.RunRequest)
        assert maintain(store, parse_moment(again.tags[NOW_TAG])).summary["snapshot"] == "s0/1"
    require_published_without_the_row(store, "correctness_conditions")


@pytest.mark.slow
@pytest.mark.usefixtures("no_settings")
def test_a_night_whose_report_breaks_publishes_every_row_and_says_why_the_report_is_incomplete(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        failing(patch, collect, "explanations", lambda given, _: given[0]["scope"])
        done = maintain(store, parse_moment(NIGHT))
    assert (done.summary["snapshot"], done.summary["counts"]["topics_created"]) == ("s0/1", 5)
    problem = "OverflowError: a value too large for this machine"
    assert done.summary["warnings"] == [f"this report is incomplete: {problem}"]
    page = done.pages[0].read_text()
    assert f"this report is incomplete: {problem}" in page
    assert not (store.home.root / "work" / "s0").exists()
    assert titles(store) == [f"Topic {n}" for n in range(5)]
    assert store.ledger.scan("quarantine").collect().is_empty()
    assert incomplete_reports(store) == [problem]
    assert maintain(store, parse_moment("2026-04-07T02:00:00Z")).summary["warnings"] == []


def incomplete_reports(store: Store) -> list[str]:
    """The reasons for incomplete reports in the metadata of the asset."""
    key = dg.AssetKey("maintenance_report")
    with dagster_instance(store.home) as instance:
        events = instance.fetch_materializations(key, limit=10).records
    return [str(event.asset_materialization.metadata["incomplete"].value) for event in events]


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
    poison(monkeypatch, OverflowError("a value too large for this machine"))
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

    with pytest.raises(PlanStale, match="row 0000 to set aside"):
        apply_plan(by_changed_plan, changed(path, tmp_path / "changed.json", "0000"))
    assert current_snapshot(by_changed_plan.home, "s0") is None


# Through Dagster


def ended(store: Store) -> tuple[Any, dg.ExecuteInProcessResult]:
    """A run of the schedule that fails, and what the sensor makes of it."""
    definitions = build_defs(store.home.root)
    job = definitions.resolve_job_def(NIGHTLY)
    sensor = definitions.get_repository_def().get_sensor_def("set_aside")
    with dagster_instance(store.home) as instance:
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
    with monkeypatch.context() as patch:
        poison(patch, OverflowError("a value too large for this machine"))
        again, failed = ended(store)
    assert isinstance(again, dg.RunRequest)
    assert again.run_key == f"without/{failed.run_id}"
    assert (again.partition_key, again.tags[NOW_TAG]) == ("s0", NIGHT)
    assert maintain(store, parse_moment(again.tags[NOW_TAG])).summary["snapshot"] == "s0/1"
    assert len(titles(store)) == 4


@pytest.mark.slow
@pytest.mark.usefixtures("no_settings")
def test_a_run_that_failed_for_another_reason_is_not_run_again(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    poison(monkeypatch, StoreLocked(str(store.home.root), "process 7"))
    skipped, _ = ended(store)
    assert isinstance(skipped, dg.SkipReason)
    assert "StoreLocked" in str(skipped.skip_message)
