"""L5: a plan lists exactly what applying it does; if the state changed in between, applying it is refused."""

import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from memstate_core.demo import sample_paths
from memstate_core.ingest.importer import import_paths
from memstate_core.model.errors import PlanInvalid, PlanStale, SnapshotDamaged, StepFailed, StoreLocked, StoreNotFound
from memstate_core.model.text import parse_moment
from memstate_core.night.clone import cloned
from memstate_core.night.plan_file import Action, Plan, actions, read_plan, write_plan
from memstate_core.run.store import Store, open_store
from memstate_core.state.current import current_snapshot
from memstate_core.state.fold.decisions import PUBLISHED
from memstate_core.state.lock import exclusive
from memstate_pipeline.planning import apply_plan, plan_on
from memstate_pipeline.run import Maintained, maintain
from tests.pipeline.conftest import NIGHT, run_memstate

EVENING, NOW = parse_moment("2026-04-05T20:00:00Z"), parse_moment(NIGHT)
POLICY = "[policy]\ntopic_count_soft_limit = 0\nsalience_half_life_days = 2.0\n"
"""Under it the sample's older topics fade within its five weeks, so that a night archives."""


@dataclass(frozen=True)
class Ready:
    """A store with one published night, with evidence and a dump that wait for the next, and that night's plan."""

    home: Path
    plan: Plan
    path: Path


pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_settings")]


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Ready:
    return make_ready(tmp_path_factory.mktemp("plan"), POLICY)


@pytest.fixture
def home(ready: Ready, tmp_path: Path) -> Path:
    """A copy of the store for one test to change."""
    return Path(shutil.copytree(ready.home, tmp_path / "home"))


def make_ready(folder: Path, settings: str) -> Ready:
    home, path = folder / "home", folder / "plans" / "plan.json"
    (home / "inbox").mkdir(parents=True)
    (home / "memstate.toml").write_text(settings)
    chats, observations, late = sample_paths()
    store = open_store(home)
    import_paths(store.ledger, store.settings, [chats], now=EVENING, run_id="first")
    maintain(store, EVENING)
    import_paths(store.ledger, store.settings, [observations], now=EVENING, run_id="second")
    shutil.copy(late, home / "inbox" / "late.jsonl")
    return Ready(home, planned(home, path), path)


def planned(home: Path, path: Path) -> Plan:
    with cloned(open_store(home)) as clone:
        made = plan_on(clone, NOW)
    write_plan(made, path)
    return made


def files_of(home: Path) -> dict[str, str]:
    """SHA-256 of all files of a store, without locks, the cache that plans share, and Dagster's history."""
    aside = {home / "cache", home / "dagster"}
    files = [path for path in home.rglob("*") if path.is_file() and not aside & set(path.parents)]
    return {str(p.relative_to(home)): hashlib.sha256(p.read_bytes()).hexdigest() for p in files if p.suffix != ".lock"}


def recorded(store: Store, done: Maintained) -> list[Action]:
    """The decisions of a maintenance in the ledger, as actions."""
    rows = store.ledger.scan("transitions").filter(pl.col("kind") != PUBLISHED).sort("seq").collect()
    parts = done.summary.get("shards", [done.summary])
    return [a for part in parts for a in actions(rows.filter(pl.col("run_id") == part["run_id"]), part["shard"])]


def tampered(ready: Ready, path: Path, change: Callable[[dict[str, Any]], object], rehash: bool = True) -> Path:
    document = json.loads(ready.path.read_text())
    change(document)
    if rehash:
        del document["plan_hash"]
        canonical = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        document["plan_hash"] = hashlib.sha256(canonical.encode()).hexdigest()
    path.write_text(json.dumps(document))
    return path


def without_a_merge(document: dict[str, Any]) -> None:
    document["actions"].remove(next(action for action in document["actions"] if action["kind"] == "merged"))


def test_planning_changes_no_file_of_the_store_and_leaves_nothing_behind(ready: Ready, home: Path) -> None:
    before = files_of(home)
    again = planned(home, home.parent / "again.json")
    assert files_of(home) == before
    assert sorted(entry.name for entry in (home / "work").iterdir()) == ["plan.lock", "verified-evidence"]
    assert (home.parent / "again.json").read_bytes() == ready.path.read_bytes()
    assert again == read_plan(ready.path)


def test_a_plan_lists_every_kind_of_action_and_the_state_it_speaks_of(ready: Ready) -> None:
    document = json.loads(ready.path.read_text())
    assert document["summary"].keys() >= {"archived", "merged", "placed", "topic_created"}
    assert sum(document["summary"].values()) == len(document["actions"])
    assert document["base"]["s0"]["snapshot"] == "s0/1"
    assert document["inbox"] == {"late.jsonl": hashlib.sha256(sample_paths()[2].read_bytes()).hexdigest()}
    merge = next(action for action in document["actions"] if action["kind"] == "merged")
    assert {merge["topic_id"], merge["payload"]["survivor"]} <= document["titles"].keys()
    assert PUBLISHED not in document["summary"]


def test_applying_does_exactly_the_plan_which_is_what_maintain_does(ready: Ready, home: Path) -> None:
    twin = open_store(Path(shutil.copytree(home, home.parent / "twin")))
    done, plain = apply_plan(open_store(home), ready.path), maintain(twin, NOW)
    assert recorded(open_store(home), done) == ready.plan.actions == recorded(twin, plain)
    assert done.summary["state_hash"] == ready.plan.result["s0"].state_hash == plain.summary["state_hash"]
    assert done.summary["counts"] == ready.plan.result["s0"].counts
    assert (home / "inbox" / "processed" / "late.jsonl").exists()

    after = files_of(home)
    with pytest.raises(PlanStale, match=r"snapshot of s0: found s0/2, expected s0/1") as refused:
        apply_plan(open_store(home), ready.path)
    assert "inbox/late.jsonl: found missing" in str(refused.value)
    assert files_of(home) == after


def import_more(home: Path) -> None:
    dump = home / "more.jsonl"
    dump.write_text('{"title": "A later thing", "fields": [{"name": "gate", "value": "shut"}]}\n')
    store = open_store(home)
    import_paths(store.ledger, store.settings, [dump], now=EVENING, run_id="later")


MOVES: dict[str, tuple[Callable[[Path], object], str]] = {
    "an import": (import_more, "evidence version: found 2, expected 1"),
    "another dump": (lambda home: (home / "inbox" / "b.jsonl").write_text("{}\n"), "inbox/b.jsonl: found [0-9a-f]{64}"),
    "a changed dump": (lambda home: (home / "inbox" / "late.jsonl").write_text("{}\n"), "inbox/late.jsonl: found"),
    "a setting": (
        lambda home: (home / "memstate.toml").write_text(POLICY.replace("2.0", "3.0")),
        r"setting policy.salience_half_life_days: found 3.0, expected 2.0",
    ),
    "a maintenance": (lambda home: maintain(open_store(home), EVENING), "transitions version: found 1, expected 0"),
}


@pytest.mark.parametrize("move", MOVES)
def test_a_plan_is_refused_once_the_state_has_moved_and_nothing_changes(move: str, ready: Ready, home: Path) -> None:
    make, answer = MOVES[move]
    make(home)
    before = files_of(home)
    with pytest.raises(PlanStale, match=answer):
        apply_plan(open_store(home), ready.path)
    assert files_of(home) == before


OTHERWISE: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "an action fewer": (without_a_merge, r"actions not in the plan: 1,"),
    "another state": (lambda document: document["result"]["s0"].update(state_hash="0" * 64), "state hash: found"),
    "another payload": (
        lambda document: document["actions"][0].update(payload={}),
        "actions planned and not taken: 1,",
    ),
    "another order": (lambda document: document["actions"].reverse(), "the order of actions"),
}


@pytest.mark.parametrize("change", OTHERWISE)
def test_a_run_that_decides_otherwise_is_refused_before_it_publishes(change: str, ready: Ready, home: Path) -> None:
    make, answer = OTHERWISE[change]
    with pytest.raises(PlanStale, match=answer):
        apply_plan(open_store(home), tampered(ready, home.parent / "plan.json", make))
    served = current_snapshot(open_store(home).home, "s0")
    assert served is not None
    assert served.name == "s0/1"
    assert open_store(home).ledger.version("transitions") == ready.plan.transitions_version


def test_a_run_that_fails_for_another_reason_says_so(ready: Ready, home: Path) -> None:
    shutil.rmtree(home / "work", ignore_errors=True)
    (home / "work").write_text("a file where the folder of runs belongs")
    with pytest.raises(StepFailed, match="the run of shard s0 failed"):
        apply_plan(open_store(home), ready.path)


def test_a_damaged_base_is_named(ready: Ready, home: Path) -> None:
    (home / "snapshots" / "s0" / "1" / "graph.kuzu").write_bytes(b"no graph")
    with pytest.raises(SnapshotDamaged, match=r"graph\.kuzu"):
        apply_plan(open_store(home), ready.path)


def test_a_plan_that_was_edited_is_refused(ready: Ready, home: Path) -> None:
    before = files_of(home)
    path = tampered(ready, home.parent / "plan.json", without_a_merge, rehash=False)
    with pytest.raises(PlanInvalid, match=r"it was changed.*run `memstate plan` again"):
        apply_plan(open_store(home), path)
    assert files_of(home) == before


def test_what_is_no_plan_is_refused_with_the_reason(ready: Ready, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    with pytest.raises(PlanInvalid, match="No such file"):
        read_plan(path)
    path.write_text("nothing")
    with pytest.raises(PlanInvalid, match="cannot be read"):
        read_plan(path)
    for document in ("[]", "{}", '{"format": "memstate-plan/9"}'):
        path.write_text(document)
        with pytest.raises(PlanInvalid, match="expected 'memstate-plan/1'"):
            read_plan(path)
    with pytest.raises(PlanInvalid, match="transitions_version"):
        read_plan(tampered(ready, path, lambda document: document.pop("transitions_version")))


def test_the_order_in_which_a_step_lists_equal_decisions_does_not_show() -> None:
    row = {"scope": "user:a", "payload_json": '{"x": 1.5}', "reason": "r"}
    decisions = pl.DataFrame(
        [
            {"kind": "placed", "topic_id": "b", "evidence_ids": ["2", "1"]} | row,
            {"kind": "placed", "topic_id": "a", "evidence_ids": None} | row,
            {"kind": "restored", "topic_id": "0", "evidence_ids": ["3"]} | row,
            {"kind": "archived", "topic_id": "0", "evidence_ids": ["3"]} | row,
            {"kind": PUBLISHED, "topic_id": None, "evidence_ids": None} | row,
        ]
    )
    found = actions(decisions, "s0")
    assert [(action.kind, action.topic_id) for action in found] == [
        ("placed", "a"), ("placed", "b"), ("restored", "0"), ("archived", "0"),
    ]  # fmt: skip
    assert [action.evidence_ids for action in found[:2]] == [[], ["1", "2"]]
    assert (found[0].shard, found[0].payload) == ("s0", {"x": 1.5})
    assert actions(decisions[[1, 0, 2, 3, 4]].with_columns(pl.col("evidence_ids").list.reverse()), "s0") == found
    assert actions(decisions[[0, 1, 3, 2, 4]], "s0") != found


def test_shards_are_planned_and_applied_together(tmp_path: Path) -> None:
    home, path = tmp_path / "home", tmp_path / "plan.json"
    (home / "inbox").mkdir(parents=True)
    (home / "memstate.toml").write_text("[store]\nshards = 2\n")
    row = '{"scope": {"type": "user", "id": "u%d"}, "title": "Yard %d", "observed_at": "2026-04-01"}\n'
    (home / "inbox" / "yards.jsonl").write_text("".join(row % (user, user) for user in range(8)))
    plan = planned(home, path)
    assert {action.shard for action in plan.actions} == {"s0", "s1"} == plan.base.keys()
    assert {base.snapshot for base in plan.base.values()} == {None}
    done = apply_plan(open_store(home), path)
    assert recorded(open_store(home), done) == plan.actions
    assert {part["shard"]: part["state_hash"] for part in done.summary["shards"]} == {
        shard: result.state_hash for shard, result in plan.result.items()
    }


def test_a_clone_writes_nothing_through_to_the_store(ready: Ready, home: Path) -> None:
    del ready
    before = files_of(home)
    with cloned(open_store(home)) as clone:
        assert (clone.home.root / "memstate.toml").read_text() == POLICY
        data = next(clone.home.ledger.rglob("*.parquet"))
        assert data.stat().st_nlink > 1
        for name in ("memstate.toml", "inbox/late.jsonl", "snapshots/s0/CURRENT"):
            with (clone.home.root / name).open("a") as file:
                file.write("\n")
        import_more(clone.home.root)
        maintain(clone, NOW, on_clone=True)
    assert files_of(home) == before


def test_planning_waits_for_no_run_and_clears_what_a_killed_plan_left(home: Path) -> None:
    store = open_store(home)
    left = store.home.work("plan") / "ledger"
    left.mkdir(parents=True)
    with exclusive(store.home.lock, "a night"), pytest.raises(StoreLocked, match="a night"), cloned(store):
        pass
    assert not left.exists()
    with cloned(store) as clone:
        assert clone.home.ledger.exists()
        with pytest.raises(StoreLocked, match="memstate plan"), cloned(store):
            pass
    with pytest.raises(StoreNotFound, match="holds nothing"), cloned(open_store(home.parent / "nowhere")):
        pass
    assert not (home.parent / "nowhere").exists()


def test_the_commands_plan_and_apply(home: Path) -> None:
    path = home.parent / "plan.json"
    history = home.parent / "dagster"
    answer = run_memstate(home, "plan", "--now", NIGHT, "--output", str(path), DAGSTER_HOME=str(history))
    assert answer.code == 0, answer.stderr
    assert not history.exists()
    assert f"apply {path}" in answer.stdout
    merges = [action for action in read_plan(path).actions if action.kind == "merged"]
    assert f"merges: {len(merges)}" in answer.stdout
    assert all(f"({action.topic_id})" in answer.stdout and str(action.reason) in answer.stdout for action in merges)
    first = run_memstate(home, "apply", str(path), "--json")
    assert first.code == 0, first.stderr
    assert first.document["state_hash"] == read_plan(path).result["s0"].state_hash
    second = run_memstate(home, "apply", str(path), "--json")
    assert (second.code, second.document["error"]["type"]) == (1, "PlanStale")
    assert any("evidence version" in difference for difference in second.document["error"]["differences"])
    third = run_memstate(home, "plan", "--now", NIGHT, "--output", str(path), "--json")
    assert third.document.keys() >= {"path", "plan_hash", "now", "base", "inbox", "result", "summary"}
    assert read_plan(path).plan_hash == third.document["plan_hash"]
