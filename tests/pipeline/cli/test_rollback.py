"""`memstate rollback` and `memstate undo --run` between real nights, and after a kill."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from memstate_core.model.scope import Layout
from memstate_core.run.store import open_store
from memstate_core.serve.runs import runs
from memstate_core.state.current import move_current, served
from memstate_core.state.snapshots import load_snapshot
from tests.pipeline.conftest import Answer, Memstate, run_memstate

pytestmark = pytest.mark.slow

QUARTZ = {"title": "Quartz lagoon harvest", "summary": "Signing with the northern partner at the harbour office"}
OWNED = {"fields": [{"name": "owner", "value": "Aya"}, {"name": "since", "value": "2019-03-04"}]}
SEA: dict[str, Any] = {"title": "Old Ferry Yard", "summary": "Pocket park at the harbour, opens in May"}
NIGHTS = [f"2026-04-{number:02}T02:00:00Z" for number in range(2, 9)]
NAMES = ("run_id", "snapshot", "state_hash")


def imported(home: Path, night: int, rows: dict[str, dict[str, Any]]) -> None:
    home.mkdir(exist_ok=True)
    given = {"scope": {"type": "user", "id": "ines"}, "placement": "new_topic", "observed_at": NIGHTS[night]}
    dump = home.parent / f"{night}.jsonl"
    dump.write_text("".join(json.dumps({"observation_id": name, **given, **row}) + "\n" for name, row in rows.items()))
    assert run_memstate(home, "import", str(dump), "--now", NIGHTS[night]).code == 0


def done(answer: Answer) -> dict[str, Any]:
    assert answer.code == 0, answer.stderr
    return dict(answer.document)


@pytest.fixture(scope="module")
def two_nights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home after two nights; the second merged two topics that are the same."""
    home = tmp_path_factory.mktemp("rollback") / "home"
    imported(home, 0, {"quartz-1": QUARTZ | OWNED, "yard": SEA})
    first = done(run_memstate(home, "maintain", "--now", NIGHTS[0], "--json"))
    imported(home, 1, {"quartz-2": QUARTZ | OWNED, "boat": {"title": "Boat shed roof repair"}})
    second = done(run_memstate(home, "maintain", "--now", NIGHTS[1], "--json"))
    assert (first["counts"]["merges"], second["counts"]["merges"]) == (0, 1)
    (home.parent / "nights.json").write_text(json.dumps([first, second]))
    return home


@pytest.fixture
def home(two_nights: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(two_nights, tmp_path / "home"))


@pytest.fixture
def memstate(home: Path) -> Memstate:
    return lambda *arguments, **environment: run_memstate(home, *arguments, **environment)


@pytest.fixture
def nights(two_nights: Path) -> list[dict[str, Any]]:
    return list(json.loads((two_nights.parent / "nights.json").read_text()))


def titles(memstate: Memstate) -> list[str]:
    answer = done(memstate("query", "quartz lagoon or the roof of the boat shed", "--json"))
    return sorted(candidate["title"] for candidate in answer["candidates"])


def listed(home: Path, limit: int = 20) -> list[tuple[Any, ...]]:
    """What `/v1/runs` says of each run."""
    names = ("run_id", "snapshot", "now", "state_hash")
    found = runs(open_store(home), limit)
    merges = [run["counts"] and run["counts"].get("merges") for run in found]
    return [(*map(run.get, names), count, run["in_effect"]) for run, count in zip(found, merges, strict=True)]


def verified(memstate: Memstate) -> bool:
    return bool(done(memstate("verify", "--json"))["passed"])


def test_a_night_is_rolled_back_and_the_next_one_continues(
    home: Path, memstate: Memstate, nights: list[dict[str, Any]]
) -> None:
    before, rows = titles(memstate), open_store(home).ledger.count("evidence")
    answer = done(memstate("rollback", "--now", NIGHTS[2], "--why", "a bad dump", "--json"))
    assert (answer["snapshot"], answer["state_hash"]) == ("s0/3", nights[0]["state_hash"])
    assert (answer["state_of"], answer["before"]) == ({"snapshot": "s0/1", "now": NIGHTS[0]}, "s0/2")
    assert (answer["undone"]["merged"], answer["runs"], answer["evidence_left"]) == (1, [nights[1]["run_id"]], 2)
    assert "Boat shed roof repair" in before
    assert "Boat shed roof repair" not in titles(memstate)
    assert done(memstate("merges", "--json"))["merges"] == []
    (undone,) = done(memstate("merges", "--all", "--json"))["merges"]
    assert (undone["undone"], undone["undone_at"]) == (True, NIGHTS[2])
    assert verified(memstate)
    assert listed(home) == [
        (answer["run_id"], "s0/3", NIGHTS[0], nights[0]["state_hash"], None, True),
        (nights[1]["run_id"], "s0/2", NIGHTS[1], nights[1]["state_hash"], 1, False),
        (nights[0]["run_id"], "s0/1", NIGHTS[0], nights[0]["state_hash"], 0, True),
    ]
    status = done(memstate("status", "--json"))
    assert (status["evidence"], status["waiting"]) == (rows, 2)
    third = done(memstate("maintain", "--now", NIGHTS[3], "--json"))
    assert (third["snapshot"], third["counts"]["merges"], third["counts"]["evidence"]) == ("s0/4", 0, 2)
    assert "Boat shed roof repair" in titles(memstate)
    assert verified(memstate)
    back = done(memstate("rollback", "2", "--now", NIGHTS[4], "--json"))
    assert (back["state_hash"], back["again"]["merged"]) == (nights[1]["state_hash"], 1)
    assert [run[1] for run in listed(home) if run[-1]] == ["s0/5", "s0/2", "s0/1"]
    assert verified(memstate)


def test_a_repeated_or_interrupted_rollback_is_completed_and_not_made_twice(home: Path, memstate: Memstate) -> None:
    first = done(memstate("rollback", "--now", NIGHTS[2], "--json"))
    again = memstate("rollback", "1", "--now", NIGHTS[2])
    assert (again.code, again.stdout) == (0, "nothing to undo: s0/3 serves the state of s0/1 already\n")
    move_current(open_store(home).home, "s0", 2)
    completed = done(memstate("rollback", "--now", NIGHTS[2], "--json"))
    assert completed == {"snapshot": "s0/3", "state_hash": first["state_hash"], "completed": True}
    refused = memstate("rollback", "--now", NIGHTS[2], "--json")
    assert (refused.code, refused.document["error"]["type"]) == (1, "RollbackRefused")
    assert memstate("rollback", "--shard", "s7").code == 2


def test_a_night_with_a_wrong_clock_is_rolled_back_although_it_decided_nothing(
    memstate: Memstate, nights: list[dict[str, Any]]
) -> None:
    wrong = done(memstate("maintain", "--now", "9999-12-31T23:59:59Z", "--json"))
    assert wrong["state_hash"] != nights[1]["state_hash"]
    answer = done(memstate("rollback", "--json"))
    assert (answer["snapshot"], answer["state_hash"]) == ("s0/4", nights[1]["state_hash"])
    assert (answer["state_of"]["snapshot"], answer["undone"], answer["runs"]) == ("s0/2", {}, [])
    assert verified(memstate)
    assert done(memstate("maintain", "--now", NIGHTS[2], "--json"))["now"] == NIGHTS[2]


def test_a_run_is_undone_at_once(home: Path, memstate: Memstate, nights: list[dict[str, Any]]) -> None:
    run_id = nights[1]["run_id"]
    answer = done(memstate("undo", "--run", run_id, "--now", NIGHTS[2], "--json"))
    assert (answer["run"], answer["undone"], answer["left"]) == (run_id, {"merged": 1}, [])
    assert titles(memstate).count(QUARTZ["title"]) == 2
    assert verified(memstate)
    assert listed(home) == [
        (answer["run_id"], "s0/3", NIGHTS[2], answer["state_hash"], None, True),
        (run_id, "s0/2", NIGHTS[1], nights[1]["state_hash"], 1, True),
        (nights[0]["run_id"], "s0/1", NIGHTS[0], nights[0]["state_hash"], 0, True),
    ]
    failed = home / "reports" / "failed-s0.json"
    failed.write_text(json.dumps({"run_id": "failed", "shard": "s0", "now": NIGHTS[2], "snapshot": None}))
    assert [run[4] for run in listed(home, 2)] == [None, 1]
    again = done(memstate("undo", "--run", run_id, "--now", NIGHTS[2], "--json"))
    assert again.keys().isdisjoint(NAMES)
    assert [(row["kind"], row["count"]) for row in again["left"]] == [("merged", 1)]
    unknown = memstate("undo", "--run", "nobody", "--json")
    assert (unknown.code, unknown.document["error"]["type"]) == (1, "RunUnknown")


def test_each_shard_is_rolled_back_by_itself(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "memstate.toml").write_text("[store]\nshards = 2\n")
    names = [
        name
        for shard in ("s0", "s1")
        for name in ("ines", "aya", "ben", "cleo")
        if Layout(2).of(f"user:{name}") == shard
    ]
    scopes = [{"scope": {"type": "user", "id": name}} for name in (names[0], names[-1])]
    for night in range(2):
        rows = {f"{night}-{place}": QUARTZ | OWNED | scope for place, scope in enumerate(scopes)}
        imported(home, night, rows)
        assert run_memstate(home, "maintain", "--now", NIGHTS[night]).code == 0
    store = open_store(home)
    before = {shard: load_snapshot(store.home, shard, 2).manifest.state_hash for shard in store.shards}
    assert run_memstate(home, "rollback", "--now", NIGHTS[2]).code == 2
    done(run_memstate(home, "rollback", "--shard", "s0", "--now", NIGHTS[2], "--json"))
    answer = done(run_memstate(home, "rollback", "--shard", "s1", "--now", NIGHTS[2], "--json"))
    assert (answer["snapshot"], answer["state_of"]["snapshot"]) == ("s1/3", "s1/1")
    assert answer["reverse"] == "2 --shard s1"
    assert verified(lambda *arguments: run_memstate(home, *arguments))
    done(run_memstate(home, "rollback", "2", "--shard", "s0", "--now", NIGHTS[3], "--json"))
    hashes = [snapshot.manifest.state_hash for snapshot in served(store.home, store.shards)]
    assert hashes == [before["s0"], load_snapshot(store.home, "s1", 1).manifest.state_hash]
    third = done(run_memstate(home, "maintain", "--now", NIGHTS[4], "--json"))
    assert (third["snapshot"], third["counts"]["merges"]) == ("s0/5,s1/4", 0)
    assert verified(lambda *arguments: run_memstate(home, *arguments))
