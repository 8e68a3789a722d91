"""Nights of several shards side by side: the same states, nothing lost, and nobody writes what another one reads."""

from __future__ import annotations

import json
import os
import shutil
import signal
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from memstate_core.model.errors import StoreLocked
from memstate_core.run.store import open_store
from memstate_core.state.lock import exclusive
from memstate_pipeline import shard_night
from memstate_pipeline.dead_runs import STARTED_AND_SILENT, end_dead_runs
from memstate_pipeline.definitions import build_defs
from memstate_pipeline.instance import dagster_instance
from memstate_pipeline.jobs import COMPACTION
from memstate_pipeline.nights import IMPORT_INBOX, NIGHTLY
from tests import warm
from tests.pipeline.conftest import clean_environment, run_memstate
from tests.pipeline.shard_nights import AT_ONCE, SHARDS, during, night, served
from tests.pipeline.sharded_homes import NIGHTS, begun, done, imported, rows_of, scope_states, verified

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_settings", "nights_at_once")]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A store of two shards whose first night is due."""
    home = begun(tmp_path / "home", len(SHARDS))
    imported(home, 0)
    return home


def dropped(home: Path, number: int) -> None:
    """Puts what comes before a night into the inbox."""
    (home / "inbox").mkdir(exist_ok=True)
    dump = home / "inbox" / f"{number}.jsonl"
    dump.write_text("".join(json.dumps(row) + "\n" for row in rows_of(number)))
    os.utime(dump, (0, 0))


def test_the_states_are_those_of_nights_one_after_another(home: Path, tmp_path: Path) -> None:
    done(home, "maintain", "--now", NIGHTS[0])
    dropped(home, 1)
    other = tmp_path / "other"
    shutil.copytree(home, other)
    at_once = done(home, "maintain", "--now", NIGHTS[1], **AT_ONCE)
    assert done(other, "maintain", "--now", NIGHTS[1])["state_hash"] == at_once["state_hash"]
    assert scope_states(home) == scope_states(other)
    verified(home)
    reports = [json.loads(path.read_text()) for path in (home / "reports").glob("*.json")]
    accepted = sorted(report["ingest"]["accepted"] for report in reports if report["now"] == NIGHTS[1])
    assert accepted == [0, len(rows_of(1))], "an import is on one page"
    with dagster_instance(open_store(home, {}).home) as instance:
        runs = instance.get_runs(dg.RunsFilter(job_name=NIGHTLY))
    assert [run.status for run in runs] == [dg.DagsterRunStatus.SUCCESS] * 2 * len(SHARDS)


def test_a_night_publishes_while_another_one_is_in_progress(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused: list[tuple[int, Mapping[str, Any]]] = []

    def act() -> None:
        night(home, "s1")
        assert served(home) == {"s1": "1"}
        with pytest.raises(StoreLocked, match="the night of s0"):
            night(home, "s0")
        for command in (["compact"], ["erase", "--scope", "user:u1", "--yes"], ["rebuild"]):
            answer = run_memstate(home, *command, "--json", **AT_ONCE)
            refused.append((answer.code, answer.document["error"]))
        imported(home, 1)

    with during("s0", monkeypatch, act):
        night(home, "s0")
    assert served(home) == dict.fromkeys(SHARDS, "1")
    assert {(code, error["type"]) for code, error in refused} == {(3, "StoreLocked")}
    assert all("the night of s0" in error["message"] for _, error in refused)
    verified(home)
    status = done(home, "status")
    assert status["waiting"] > 0, "what came during the night of s0 was not read by it"
    done(home, "maintain", "--now", NIGHTS[1], **AT_ONCE)
    assert done(home, "status")["waiting"] == 0
    verified(home)


def test_one_that_dies_leaves_others_alone_and_is_made_up_for(home: Path) -> None:
    command = ["-m", "memstate_pipeline", "--home", str(home), "maintain", "--now", NIGHTS[0], "--json"]
    answer = home.parent / "answer.json"
    with answer.open("wb") as output, (home.parent / "errors").open("wb") as errors:
        process = warm.Process(command, clean_environment(**AT_ONCE), output, errors)
        note = home / "work" / "s1.holder.json"
        while not (note.exists() and (said := note.read_text()).endswith("}")):
            assert process.returncode is None
            time.sleep(0.005)
        victim = int(json.loads(said)["holder"].split()[1])
        os.kill(victim, signal.SIGKILL)
        code = process.wait()
    error = json.loads(answer.read_text())["error"]
    assert (code, error["type"]) == (1, "ShardsFailed")
    assert "its process ended with exit code -9" in error["message"]
    assert sorted(served(home)) == ["s0"]
    done(home, "maintain", "--now", NIGHTS[0], **AT_ONCE)
    assert sorted(served(home)) == SHARDS
    verified(home)


def test_a_job_that_needs_the_whole_store_waits_for_nights_and_says_so(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done(home, "maintain", "--now", NIGHTS[0], **AT_ONCE)
    monkeypatch.setattr(shard_night, "_SAY_SECONDS", 0.0)
    locked = threading.Event()

    def hold() -> None:
        with exclusive(open_store(home).home.shard_lock("s1"), "the night of s1", brief=True):
            locked.set()
            time.sleep(1.5)

    thread = threading.Thread(target=hold)
    thread.start()
    locked.wait()
    with dagster_instance(open_store(home).home) as instance:
        result = build_defs(home).resolve_job_def("verify_store").execute_in_process(instance=instance)
        messages = [event.user_message for event in instance.all_logs(result.run_id)]
    thread.join()
    assert result.success
    assert "waits for the night of s1" in messages
    monkeypatch.setattr(shard_night, "PATIENCE_SECONDS", 0.0)
    with (
        exclusive(open_store(home).home.shard_lock("s1"), "the night of s1", brief=True),
        pytest.raises(dg.DagsterResourceFunctionError) as error,
    ):
        build_defs(home).resolve_job_def("verify_store").execute_in_process()
    assert isinstance(error.value.__cause__, StoreLocked)


def test_an_import_job_goes_on_beside_nights_which_wait_for_jobs(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from memstate_pipeline.imports import unreported

    dropped(home, 1)
    real, notes = unreported.keep, list[dict[str, Any]]()

    def job() -> None:
        with dagster_instance(open_store(home).home) as instance:
            assert build_defs(home).resolve_job_def(IMPORT_INBOX).execute_in_process(instance=instance).success

    def act() -> None:
        job()
        assert not (home / "inbox" / "1.jsonl").exists()

    with during("s0", monkeypatch, act):
        night(home, "s0")

    def keep(*given: Any) -> None:
        notes.append(json.loads((home / "run.holder.json").read_text()))
        real(*given)

    monkeypatch.setattr(unreported, "keep", keep)
    job()
    assert [note["brief"] for note in notes] == [True], "nights wait for it"
    with dagster_instance(open_store(home).home) as instance:
        assert build_defs(home).resolve_job_def(COMPACTION).execute_in_process(instance=instance).success
    verified(home)


def test_a_night_waits_for_those_that_hold_the_store_briefly_and_for_nobody_else(home: Path) -> None:
    lock, taken = open_store(home).home.lock, threading.Event()

    def hold() -> None:
        with exclusive(lock, "another night", brief=True):
            taken.set()
            time.sleep(2 * shard_night.PROBED_SECONDS)

    thread = threading.Thread(target=hold)
    thread.start()
    taken.wait()
    night(home, "s1")
    thread.join()
    with exclusive(lock, "an erasure"), pytest.raises(StoreLocked, match="an erasure"):
        night(home, "s0")


def test_a_silent_night_that_holds_its_shard_is_alive_and_one_that_died_is_found(home: Path) -> None:
    from tests.pipeline.test_dead_runs import later

    store = open_store(home)
    with dagster_instance(store.home) as instance:
        job = build_defs(home).resolve_job_def(NIGHTLY)
        run = instance.create_run_for_job(job, tags={"dagster/partition": "s1"}, status=dg.DagsterRunStatus.STARTED)
        lock = store.home.shard_lock("s1")
        with exclusive(lock, f"process 1 (Dagster run {run.run_id}), the night of s1", brief=True):
            assert end_dead_runs(store, instance, later(10 * STARTED_AND_SILENT.total_seconds())) == []
            left = lock.with_suffix(".holder.json").read_text()
        lock.with_suffix(".holder.json").write_text(left)
        assert end_dead_runs(store, instance, later(0)) == [run.run_id]
