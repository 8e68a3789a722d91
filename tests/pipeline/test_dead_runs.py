"""Runs whose process was killed: they are marked as failed, and no run that is alive is."""

from __future__ import annotations

import json
import os
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.storage.tags import GRPC_INFO_TAG
from filelock import FileLock

from memstate_core.model.text import parse_moment
from memstate_core.run.store import open_store
from memstate_core.state.home import Home
from memstate_core.state.lock import exclusive
from memstate_pipeline import run, sensors
from memstate_pipeline.dead_runs import STARTED_AND_SILENT, end_dead_runs
from memstate_pipeline.definitions import build_defs
from memstate_pipeline.instance import dagster_instance
from memstate_pipeline.report.latest import last_failure
from memstate_pipeline.writers import holding
from tests import warm
from tests.pipeline.conftest import NIGHT, clean_environment, run_memstate

pytestmark = pytest.mark.slow
RUNNING = dg.DagsterRunStatus.STARTED


@pytest.fixture
def home(tmp_path: Path) -> Home:
    dump = tmp_path / "one.jsonl"
    dump.write_text('{"title": "Yard", "observed_at": "2026-01-01"}\n')
    assert run_memstate(tmp_path / "home", "import", str(dump)).code == 0
    return open_store(tmp_path / "home", {}).home


@pytest.fixture
def instance(home: Home) -> Iterator[dg.DagsterInstance]:
    with dagster_instance(home) as opened:
        yield opened


def killed_run(home: Home) -> str:
    """Kills `memstate maintain` while it holds the store; the id of its run."""
    arguments = ["-m", "memstate_pipeline", "--home", str(home.root), "maintain", "--now", NIGHT]
    note = home.lock.with_suffix(".holder.json")
    with tempfile.TemporaryFile() as output:
        process = warm.Process(arguments, clean_environment(), output, output)
        while not (note.exists() and note.read_text().endswith("}")):
            if process.returncode is not None:
                output.seek(0)
                raise AssertionError(f"it ended before it was killed: {output.read().decode()}")
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
    return str(json.loads(note.read_text())["holder"]).split("Dagster run ")[1].split(",")[0]


def later(seconds: float = STARTED_AND_SILENT.total_seconds() + 5) -> datetime:
    return datetime.now(UTC) + timedelta(seconds=seconds)


def statuses(instance: dg.DagsterInstance) -> dict[str, dg.DagsterRunStatus]:
    return {run.run_id: run.status for run in instance.get_runs()}


def test_a_run_that_was_killed_is_marked_as_failed_with_the_reason(home: Home, instance: dg.DagsterInstance) -> None:
    run_id = killed_run(home)
    assert statuses(instance) == {run_id: RUNNING}
    note = home.lock.with_suffix(".holder.json")
    left = note.read_text()
    note.unlink()
    assert end_dead_runs(open_store(home.root, {}), instance, later(0)) == [], "it may not have reached its lock yet"
    note.write_text(left)
    assert end_dead_runs(open_store(home.root, {}), instance, later(0)) == [run_id], "it died with the lock"
    assert statuses(instance) == {run_id: dg.DagsterRunStatus.FAILURE}
    ended = instance.get_run_by_id(run_id)
    assert ended is not None
    assert ended.tags["dagster/retry_strategy"] == "ALL_STEPS"
    messages = [event.message for event in instance.all_logs(run_id)]
    assert any("its process is gone" in message for message in messages)
    failure = last_failure(open_store(home.root, {}))
    assert failure is not None
    assert (failure["run_id"], failure["error"]["type"], failure["now"]) == (run_id, "ProcessDied", NIGHT)
    assert end_dead_runs(open_store(home.root, {}), instance, later()) == []


def test_a_silent_run_that_holds_the_lock_is_alive(home: Home, instance: dg.DagsterInstance) -> None:
    run_id = killed_run(home)
    with exclusive(home.lock, f"process {os.getpid()} (Dagster run {run_id}, since now)", 10.0):
        assert end_dead_runs(open_store(home.root, {}), instance, later(36_000)) == []
    assert not home.lock.with_suffix(".holder.json").exists()
    assert end_dead_runs(open_store(home.root, {}), instance, later(0)) == [], "it released the lock a moment ago"
    with exclusive(home.lock, f"process {os.getpid()} (memstate rebuild)"):
        assert end_dead_runs(open_store(home.root, {}), instance, later()) == [run_id]


def test_a_search_for_dead_runs_stops_no_run_that_begins(home: Home) -> None:
    probe = FileLock(home.lock, thread_local=False)
    probe.acquire()
    threading.Timer(0.3, probe.release).start()
    with holding(open_store(home.root, {}), "a run that begins"):
        pass


def test_a_launched_run_has_time_to_start_while_the_server_that_launched_it_lives(
    home: Home, instance: dg.DagsterInstance
) -> None:
    job = build_defs(home.root).resolve_job_def("nightly_maintenance")
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as server:
        server.bind(f"{folder}/server")
        server.listen()
        address = {GRPC_INFO_TAG: json.dumps({"host": "localhost", "socket": f"{folder}/server"})}
        starting = dg.DagsterRunStatus.STARTING
        launched = instance.create_run_for_job(job, status=starting, tags={"dagster/partition": "s0"} | address).run_id
        lost = instance.create_run_for_job(job, status=starting, tags={"dagster/partition": "s0"}).run_id
        assert end_dead_runs(open_store(home.root, {}), instance, later(0)) == []
        assert end_dead_runs(open_store(home.root, {}), instance, later()) == [lost]
        server.close()
        assert end_dead_runs(open_store(home.root, {}), instance, later()) == [launched]


def test_runs_of_an_instance_that_stores_may_share_are_left_alone(home: Home, tmp_path: Path) -> None:
    run_id = killed_run(home)
    (home.dagster / "dagster.yaml").rename(tmp_path / "dagster.yaml")
    shared = home.dagster.rename(tmp_path / "shared")
    (tmp_path / "dagster.yaml").rename(shared / "dagster.yaml")
    with dg.DagsterInstance.from_config(str(shared)) as instance:
        assert end_dead_runs(open_store(home.root, {}), instance, later()) == []
        assert statuses(instance)[run_id] == RUNNING


class Later(datetime):
    """A clock that is ahead of the machine's."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:
        return datetime.now(tz) + 2 * STARTED_AND_SILENT


def test_the_sensor_ends_dead_runs(home: Home, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch) -> None:
    run_id = killed_run(home)
    monkeypatch.setattr(sensors, "datetime", Later)
    sensor = build_defs(home.root).get_repository_def().get_sensor_def("dead_runs")
    tick = sensor.evaluate_tick(dg.build_sensor_context(instance=instance, sensor_name="dead_runs"))
    assert tick.skip_message == f"marked as failed: {run_id}"
    assert statuses(instance) == {run_id: dg.DagsterRunStatus.FAILURE}


def test_maintain_ends_dead_runs_and_publishes(
    home: Home, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = killed_run(home)
    monkeypatch.setattr(run, "datetime", Later)
    assert run.maintain(open_store(home.root, {}), parse_moment(NIGHT)).summary["snapshot"] == "s0/1"
    found = statuses(instance)
    assert found.pop(run_id) == dg.DagsterRunStatus.FAILURE
    assert [*found.values()] == [dg.DagsterRunStatus.SUCCESS]
