"""Nights that are skipped, through Dagster and the command line: who asks for which night, and what counts as late."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from memstate_core.run.store import Store, open_store
from memstate_core.state.current import current_snapshot
from memstate_core.state.snapshots import MANIFEST
from memstate_pipeline.choose_shards import SKIPPED_TAG, choose
from memstate_pipeline.definitions import build_defs
from memstate_pipeline.doctor.data import served_snapshots
from memstate_pipeline.instance import dagster_instance
from memstate_pipeline.nights import CHOOSE, NIGHTLY
from memstate_pipeline.resources import NOW_TAG
from tests.pipeline.conftest import run_memstate
from tests.pipeline.sharded_homes import begun, done, imported
from tests.pipeline.test_store_sensors import stale

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_settings")]
BUSY = "user:u0"
TICK = datetime(2026, 4, 3, 2, tzinfo=UTC)
SKIPS = "\n[schedule]\nskip_unchanged_days = 7\nstale_hours = 30\n"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of two shards after a night; its settings let nights be skipped."""
    home = begun(tmp_path_factory.mktemp("choice") / "home", 2)
    imported(home, 0)
    done(home, "maintain", "--now", "2026-04-02T02:00:00Z")
    with (home / "memstate.toml").open("a") as file:
        file.write(SKIPS)
    return home


@pytest.fixture
def store(home: Path) -> Store:
    return open_store(home, {})


def ended(store: Store, name: str) -> tuple[list[str | None], dg.DagsterRun]:
    """The job that the schedule asks for, and the shards whose nights the sensor of this name requests after it."""
    definitions = build_defs(store.home.root)
    job, sensor = definitions.resolve_job_def(CHOOSE), definitions.get_repository_def().get_sensor_def(name)
    with dagster_instance(store.home) as instance:
        chosen = job.execute_in_process(instance=instance, tags={NOW_TAG: TICK.isoformat()}, raise_on_error=False)
        ends = (dg.DagsterEventType.RUN_FAILURE, dg.DagsterEventType.RUN_SUCCESS)
        (event,) = [each for each in chosen.all_events if each.event_type in ends]
        run = instance.get_run_by_id(chosen.run_id)
        assert run is not None
        context = dg.build_run_status_sensor_context(
            sensor_name=name, dagster_event=event, dagster_instance=instance, dagster_run=run
        )
        failed = event.event_type is dg.DagsterEventType.RUN_FAILURE
        found: Iterator[Any] = sensor(context.for_run_failure() if failed else context)
        requests = [each for each in found if isinstance(each, dg.RunRequest)]
    assert all(each.tags[NOW_TAG] == TICK.isoformat() for each in requests)
    return [each.partition_key for each in requests], run


def test_the_schedule_asks_for_the_choice_and_the_sensor_for_the_nights_that_are_due(store: Store) -> None:
    definitions = build_defs(store.home.root)
    schedule = definitions.resolve_schedule_def("nightly")
    context = dg.build_schedule_context(scheduled_execution_time=TICK, repository_def=definitions.get_repository_def())
    (request,) = schedule.evaluate_tick(context).run_requests or []
    assert (schedule.job_name, request.partition_key, request.tags[NOW_TAG]) == (CHOOSE, None, TICK.isoformat())
    assert ended(store, "chosen_nights")[0] == []
    store.home.inbox.mkdir(exist_ok=True)
    dump = store.home.inbox / "news.jsonl"
    dump.write_text('{"text": "The yard is open.", "scope": {"type": "user", "id": "u0"}}\n')
    os.utime(dump, (0, 0))
    due, run = ended(store, "chosen_nights")
    shard, other = store.layout.of(BUSY), next(each for each in store.shards if each != store.layout.of(BUSY))
    assert (due, run.tags[SKIPPED_TAG]) == ([shard], other)
    assert not dump.exists()
    with dagster_instance(store.home) as instance:
        assert choose(store, instance, TICK).due == {shard: "evidence waits for it"}
        job = definitions.resolve_job_def(NIGHTLY)
        explicit = job.execute_in_process(partition_key=other, instance=instance, tags={NOW_TAG: TICK.isoformat()})
    assert explicit.success
    assert current_snapshot(store.home, other).manifest.number == 2, "a run that was asked for is never skipped"  # type: ignore[union-attr]


def test_every_shard_has_a_night_where_the_choice_fails(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise OSError("no such device")

    monkeypatch.setattr("memstate_pipeline.choose_shards.nights_due", fails)
    assert ended(store, "nights_without_choice")[0] == store.shards
    document = done(store.home.root, "maintain", "--now", "2026-04-04T02:00:00Z")
    assert "skipped" not in document


def test_the_command_names_what_it_skips_and_repeats_a_night_that_failed(store: Store) -> None:
    home, shard = store.home.root, store.layout.of(BUSY)
    now = ("--now", "2026-04-05T02:00:00Z")
    answer = run_memstate(home, "maintain", *now)
    assert answer.stdout == "nothing published: no shard has a change\n"
    assert f"no night: {', '.join(store.shards)}" in answer.stderr
    served = current_snapshot(store.home, shard)
    assert served is not None
    (served.path / "graph.kuzu").rename(home / "graph.kuzu")
    assert run_memstate(home, "maintain", *now).code == 1
    (home / "graph.kuzu").rename(served.path / "graph.kuzu")
    document = done(home, "maintain", *now)
    assert document["skipped"] == [each for each in store.shards if each != shard]
    assert document["state_hash"] == done(home, "status")["state_hash"]
    done(home, "plan", "--output", str(home / "plan.json"), *now)
    assert "skipped" not in done(home, "apply", str(home / "plan.json"))


def test_a_skipped_shard_is_late_only_if_input_waits_too_long_or_no_night_comes(store: Store) -> None:
    served = {shard: current_snapshot(store.home, shard) for shard in store.shards}

    def aged(hours: float) -> None:
        for snapshot in filter(None, served.values()):
            at = (datetime.now(UTC) - timedelta(hours=hours)).timestamp()
            os.utime(snapshot.path / MANIFEST, (at, at))

    def late(hours: float) -> tuple[bool, bool]:
        aged(hours)
        return "no served" not in (stale(store) or ""), not served_snapshots(store, datetime.now(UTC)).ok

    assert late(7 * 24) == (False, False)
    assert late(7 * 24 + 31) == (True, False), "nothing waits, so that doctor has nothing to say"
    dump = store.home.root / "late.jsonl"
    dump.write_text('{"text": "The yard is shut.", "scope": {"type": "user", "id": "u0"}}\n')
    recently = (datetime.now(UTC) - timedelta(hours=1)).isoformat()
    done(store.home.root, "import", str(dump), "--now", recently)
    assert late(6 * 24) == (False, False), "it was imported an hour ago"
    dump.write_text('{"text": "The yard is open at last.", "scope": {"type": "user", "id": "u0"}}\n')
    long_ago = (datetime.now(UTC) - timedelta(hours=32)).isoformat()
    done(store.home.root, "import", str(dump), "--now", long_ago)
    assert late(6 * 24) == (True, True)
    assert late(29) == (False, False)
    asset = {spec.key.to_user_string(): spec for spec in build_defs(store.home.root).resolve_all_asset_specs()}
    window: Any = asset["served/s0"].freshness_policy
    assert window.fail_window.to_timedelta() == timedelta(days=7, hours=30)
