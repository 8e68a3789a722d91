"""Nights of several shards side by side on machines that share a store at a URL, with pauses, failures and kills."""

from __future__ import annotations

import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from memstate_core.model.errors import LeaseLost, StoreLocked
from memstate_core.run.store import open_store
from memstate_core.storage.head import read_head
from memstate_core.storage.held import Holding
from memstate_core.storage.purpose import STORE
from memstate_core.storage.storage import storage
from memstate_pipeline.definitions import build_defs
from memstate_pipeline.instance import dagster_instance
from memstate_pipeline.nights import NIGHTLY
from memstate_pipeline.resources import NOW_TAG
from tests import warm
from tests.core.failing_folds import break_folds
from tests.pipeline.conftest import clean_environment, run_memstate
from tests.pipeline.engines import wait_until
from tests.pipeline.paused import NIGHT_OF_A_SHARD, paused
from tests.pipeline.shard_nights import AT_ONCE, SHARDS, during, night, served
from tests.pipeline.sharded_homes import NIGHTS, begun, done, imported, rows_of, scope_states
from tests.pipeline.test_checkout import KILL_AT
from tests.storages import empty_place

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_settings", "nights_at_once")]

everywhere = pytest.mark.parametrize("machines", ["file", "s3", "az"], indirect=True)


class Machines:
    """Two checkouts of a store of two shards at a URL, of which the first has made a night."""

    def __init__(self, folder: Path, url: str, patch: pytest.MonkeyPatch) -> None:
        self.given = {"MEMSTATE_STORE_URL": url, "MEMSTATE_STORE_LEASE_SECONDS": "1"}
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
def machines(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Machines:
    """In a folder, or the kind of storage that is asked for."""
    kind = getattr(request, "param", "file")
    return Machines(tmp_path, empty_place(kind, request, tmp_path, monkeypatch), monkeypatch)


@everywhere
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


@everywhere
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


PAUSES = {
    "in the middle": ("memstate_pipeline.assets.topics", "update_topics", 1),
    "before it publishes": ("memstate_core.storage.shard_lease", "ShardLease.require", 2),
    "before the state moves": ("memstate_core.storage.lease", "Lease.commit", 2),
}


@pytest.mark.parametrize(
    ("machines", "point"), list(zip(("s3", "file", "s3"), PAUSES, strict=True)), indirect=["machines"]
)
def test_a_night_of_a_suspended_machine_publishes_nothing(machines: Machines, point: str, tmp_path: Path) -> None:
    """The system pauses the process with all its threads until another machine has made the night of the shard."""
    aya, ben = machines.aya, machines.ben
    place = storage(machines.given["MEMSTATE_STORE_URL"], STORE)
    arguments = [str(aya), "s0", NIGHTS[1]]
    with paused(PAUSES[point], NIGHT_OF_A_SHARD, arguments, machines.given, tmp_path / "output") as process:
        assert served(aya)["s0"] == ("2" if point == "before the state moves" else "1"), "it is not where it should be"
        at_last(ben, "s0", 2)
        assert (head := read_head(place)) is not None
        code, output = process.go_on()
    assert (code, "LeaseLost" in output) == (3, True), output
    assert (after := read_head(place)) is not None
    assert (after[0].state, after[0].holder) == (head[0].state, "")
    carl = machines.pulled()
    machines.done(aya, "pull")
    assert scope_states(aya) == scope_states(carl)
    night(aya, "s0", 3)
    machines.done(machines.pulled(), "verify", "--deep")
    assert served(carl)["s0"] == "3"
    ids = open_store(carl).ledger.scan("evidence").select("observation_id").collect().to_series().to_list()
    assert len(ids) == len(set(ids)) == len(rows_of(0)) + len(rows_of(1))


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
    "before the state moves": ("memstate_core.storage.lease", "Lease.commit", 2, False),
    "before the shard is released": ("memstate_core.storage.shard_lease", "ShardLease.release", 1, False),
}
NIGHT_OF = """
import os, sys
from pathlib import Path
from memstate_pipeline.run import night_of
main = lambda: night_of(Path(sys.argv[1]), {"memstate/now": sys.argv[3]}, sys.argv[2])
"""


KINDS = [("s3", "az", "file")[number % 3] for number in range(len(POINTS))]


@pytest.mark.parametrize(("machines", "point"), list(zip(KINDS, POINTS, strict=True)), indirect=["machines"])
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
