"""Nights of several shards side by side: the same states, nothing lost, and nobody writes what another one reads."""

from __future__ import annotations

import json
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from memstate_core.model.errors import LeaseLost, StoreLocked
from memstate_core.run.store import open_store
from memstate_core.state.lock import exclusive
from memstate_core.storage.held import Holding
from memstate_pipeline import shard_night
from memstate_pipeline.dead_runs import STARTED_AND_SILENT, end_dead_runs
from memstate_pipeline.definitions import build_defs
from memstate_pipeline.instance import dagster_instance
from memstate_pipeline.jobs import COMPACTION
from memstate_pipeline.nights import IMPORT_INBOX, NIGHTLY
from memstate_pipeline.resources import NOW_TAG
from memstate_pipeline.run import night_of
from tests import warm
from tests.core.failing_folds import break_folds
from tests.pipeline.conftest import clean_environment, run_memstate
from tests.pipeline.engines import wait_until
from tests.pipeline.sharded_homes import NIGHTS, begun, done, imported, rows_of, scope_states, verified
from tests.pipeline.test_checkout import KILL_AT

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_settings")]
AT_ONCE = {"MEMSTATE_STORE_NIGHTS_AT_ONCE": "2"}
STEP = "memstate_pipeline.assets.topics.update_topics"
SHARDS = ["s0", "s1"]


@pytest.fixture(autouse=True)
def settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """The setting, for what runs in this process as well."""
    for name, value in AT_ONCE.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A store of two shards whose first night is due."""
    home = begun(tmp_path / "home", len(SHARDS))
    imported(home, 0)
    return home


def night(home: Path, shard: str, number: int = 0) -> str:
    return night_of(home, {NOW_TAG: NIGHTS[number]}, shard)


@contextmanager
def during(shard: str, monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> Iterator[None]:
    """Has something happen in the middle of the night of a shard, which has begun and not published."""
    from memstate_core.run.apply import update_topics

    acted: list[str] = []

    def interrupted(store: Any, run: Any) -> Any:
        if run.facts.shard == shard and not acted:
            acted.append(shard)
            act()
        return update_topics(store, run)

    with monkeypatch.context() as patch:
        patch.setattr(STEP, interrupted)
        yield
    assert acted == [shard]


def served(home: Path) -> dict[str, str]:
    return {path.parent.name: path.read_text().strip() for path in (home / "snapshots").glob("*/CURRENT")}


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


def test_a_night_waits_for_the_turns_of_others_and_for_nobody_else(home: Path) -> None:
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


class Machines:
    """Two checkouts of a store of two shards at a URL, of which the first has made a night."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.given = {"MEMSTATE_STORE_URL": f"file://{folder}/store", "MEMSTATE_STORE_LEASE_SECONDS": "1"}
        for name, value in self.given.items():
            patch.setenv(name, value)
        self.given |= AT_ONCE
        self.aya, self.ben, self.carl = (begun(folder / name, len(SHARDS)) for name in ("aya", "ben", "carl"))
        imported(self.aya, 0)  # with the variables of this process left out, so it is here alone
        done(self.aya, "maintain", "--now", NIGHTS[0], **(self.given | {"MEMSTATE_STORE_NIGHTS_AT_ONCE": "1"}))
        imported(self.aya, 1)

    def done(self, home: Path, *arguments: str) -> dict[str, Any]:
        return done(home, *arguments, **self.given)

    def pulled(self) -> Path:
        """A third machine, as it finds the store."""
        self.done(self.carl, "pull")
        return self.carl


@pytest.fixture
def machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machines:
    return Machines(tmp_path, monkeypatch)


def test_machines_make_nights_of_shards_side_by_side(
    machines: Machines, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    aya, ben = machines.aya, machines.ben
    refused = []

    def act() -> None:
        night(ben, "s1", 1)
        with pytest.raises(StoreLocked, match="the night of s0"):
            night(ben, "s0", 1)
        answer = run_memstate(ben, "compact", "--json", **machines.given)
        refused.append((answer.code, answer.document["error"]["message"]))
        machines.done(aya, "import", str(tmp_path / "aya-0.jsonl"))
        assert "the night of s0" in finding(ben)

    with during("s0", monkeypatch, act):
        night(aya, "s0", 1)
    assert [code for code, _ in refused] == [3]
    assert "the night of s0" in refused[0][1]
    alone = begun(tmp_path / "alone", len(SHARDS))
    for number in (0, 1):
        imported(alone, number)
        done(alone, "maintain", "--now", NIGHTS[number])
    carl = machines.pulled()
    assert scope_states(carl) == scope_states(alone)
    assert served(carl) == dict.fromkeys(SHARDS, "2")
    machines.done(carl, "verify", "--deep")
    assert finding(ben).endswith("nobody writes")
    machines.done(ben, "compact")


def finding(home: Path) -> str:
    from memstate_pipeline.doctor.checkout import remote_store

    return remote_store(open_store(home)).detail


def at_last(home: Path, shard: str, number: int) -> None:
    """A night, when the lease of the shard has expired."""

    def made() -> bool:
        with suppress(StoreLocked):
            return bool(night(home, shard, number))
        return False

    wait_until(made, 30)


def test_a_paused_night_whose_shard_another_machine_took_publishes_nothing(
    machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    aya, ben = machines.aya, machines.ben
    renew = Holding._renew
    monkeypatch.setattr(Holding, "_renew", lambda _: None)

    def act() -> None:
        monkeypatch.setattr(Holding, "_renew", renew)
        at_last(ben, "s0", 2)

    with during("s0", monkeypatch, act), pytest.raises(LeaseLost):
        night(aya, "s0", 1)
    before = scope_states(machines.pulled())
    machines.done(aya, "pull")
    assert scope_states(aya) == before
    night(aya, "s0", 3)
    machines.done(machines.pulled(), "verify", "--deep")
    assert served(machines.carl)["s0"] == "3"


def test_what_a_night_that_failed_noted_reaches_the_machine_of_the_next_one(
    machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Evidence that it set aside, although others moved the state at the URL meanwhile."""
    from memstate_core.night import set_aside

    aya, ben, real, searched = machines.aya, machines.ben, set_aside.set_aside_guilty, []
    shard = open_store(aya).layout.of("user:u0")
    other = next(each for each in SHARDS if each != shard)

    def search(*given: Any, **named: Any) -> Any:
        searched.append(shard)
        night(ben, other, 1)
        return real(*given, **named)

    monkeypatch.setattr(set_aside, "set_aside_guilty", search)
    break_folds(monkeypatch, lambda evidence, *_: "u0-y1" in evidence["observation_id"].to_list(), OverflowError("big"))
    job = build_defs(aya).resolve_job_def(NIGHTLY)
    with dagster_instance(open_store(aya).home) as instance:
        failed = job.execute_in_process(
            partition_key=shard, instance=instance, tags={NOW_TAG: NIGHTS[1]}, raise_on_error=False
        )
    assert not failed.success
    night(ben, shard, 2)
    assert searched == [shard], "ben did not have to search again"
    [row] = open_store(machines.pulled()).ledger.scan("quarantine").collect().to_dicts()
    assert (row["reason"], "OverflowError: big" in row["detail"]) == ("set_aside", True)


POINTS = {
    "with the lease of the shard": ("memstate_core.night.checkout.session", "take_shard", 1, True),
    "when the shard is taken": ("memstate_core.storage.lease", "Lease.release", 1, True),
    "when the night has begun": ("memstate_core.storage.lease", "Lease.release", 2, True),
    "in the middle": ("memstate_pipeline.assets.topics", "update_topics", 1, True),
    "before it publishes": ("memstate_core.storage.shard_lease", "ShardLease.require", 2, False),
    "when it has published here": ("memstate_pipeline.assets.publish", "publish", 1, True),
    "before the state moves": ("memstate_core.storage.lease", "Lease.commit", 3, False),
    "before the shard is released": ("memstate_core.storage.shard_lease", "ShardLease.release", 1, False),
}
NIGHT_OF = """
import os, sys
from pathlib import Path
from memstate_pipeline.run import night_of
main = lambda: night_of(Path(sys.argv[1]), {"memstate/now": sys.argv[3]}, sys.argv[2])
"""


@pytest.mark.parametrize("point", POINTS)
def test_a_night_that_is_killed_is_made_up_for_by_another_machine(machines: Machines, point: str) -> None:
    aya, ben = machines.aya, machines.ben
    module, name, call, after = POINTS[point]
    script = KILL_AT.format(module=module, name=name, call=call, after=after)
    script = script.replace("from memstate_pipeline.cli.main import main\n", NIGHT_OF)
    output = aya.parent / "killed"
    with output.open("wb") as file:
        process = warm.Process(
            ["-c", script, str(aya), "s0", NIGHTS[1]], clean_environment(**machines.given), file, file
        )
        code = process.wait()
    assert code == -signal.SIGKILL, output.read_text()
    at_last(ben, "s0", 1)
    carl = machines.pulled()
    machines.done(carl, "verify", "--deep")
    ids = open_store(carl).ledger.scan("evidence").select("observation_id").collect().to_series().to_list()
    assert len(ids) == len(set(ids)) >= len(rows_of(0))
    if point != "with the lease of the shard":
        assert len(ids) == len(rows_of(0)) + len(rows_of(1)), "what aya had imported was sent"
