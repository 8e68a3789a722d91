"""Rollback on a real store: an earlier state is served again, nothing but decisions is undone, nights go on."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from memstate_core.model.errors import RollbackRefused
from memstate_core.model.ledger_tables import DECISION
from memstate_core.night.rebuild import rebuild
from memstate_core.night.rollback import RolledBack, interrupted_rollback, roll_back
from memstate_core.night.verify import verify
from memstate_core.revise.merge_history import merge_documents
from memstate_core.revise.verdicts import verdict_decisions
from memstate_core.run.begin import recover
from memstate_core.run.store import Store, open_store
from memstate_core.state.current import move_current, named_number
from memstate_core.state.fold.decisions import judgements, set_aside, undone
from tests.core.frames import filled
from tests.core.night import corrections
from tests.core.night.corrections import (
    ACME,
    BOAT,
    CAT,
    LATER,
    SCOPE,
    decide,
    exported,
    homes,
    merge,
    shard,
    state_hash,
    undo,
)
from tests.core.revise.nights import night_without_duplicates as night
from tests.core.revise.nights import record_by_key as record
from tests.core.strategies import day

pytestmark = pytest.mark.slow

first_night, store = corrections.first_night, corrections.store


def back(store: Store, number: int | None = None, at: float = 5) -> RolledBack:
    count = store.ledger.scan("transitions").select(pl.len()).collect().item()
    return roll_back(store, shard(store), f"rollback-{count}", day(at), number, "a bad night")


def failures(store: Store) -> list[Any]:
    return [verdict for verdict in verify(store, shard(store).snapshot) if not verdict.passed]


def number(store: Store) -> int:
    return shard(store).snapshot.manifest.number


def second_night(store: Store) -> None:
    """Later evidence and a night, and a merge after it: snapshots 2 and 3."""
    record(store, LATER, 3)
    night(store, 4)
    merge(store, ACME, BOAT, 4)


def test_the_state_of_an_earlier_snapshot_is_served_and_the_next_night_continues(
    store: Store, first_night: Path, tmp_path: Path
) -> None:
    never = open_store(shutil.copytree(first_night, tmp_path / "never"), {})
    first, records = state_hash(store), exported(store)
    second_night(store)
    done = back(store, 1)
    assert (done.is_new, done.to.number, done.manifest.number) == (True, 1, 4)
    assert (state_hash(store), named_number(store.home, "s0")) == (first, 4)
    assert exported(store) == records
    assert set(done.change.undone["run_id"]) == {"night-4", shard(store).rolled_back["run_id"][-1]}
    assert failures(store) == []
    rebuild(store, "s0", "again")
    assert (state_hash(store), failures(store)) == (first, [])
    for either in (store, never):
        record(either, {"eel": {"title": "Eel trap"}}, 6)
        if either is never:
            record(either, LATER, 3)
        night(either, 7)
    assert state_hash(store) == state_hash(never)
    assert {"Dune buggy", "Eel trap"} <= set(shard(store).topics["title"])
    assert failures(store) == []


def test_a_rollback_can_be_reversed_and_steps_further_when_repeated(store: Store) -> None:
    first = state_hash(store)
    record(store, LATER, 3)
    night(store, 4)
    second = state_hash(store)
    merged = merge(store, ACME, BOAT, 5)
    assert back(store).to.number == 2
    assert state_hash(store) == second
    assert back(store).to.number == 1
    assert state_hash(store) == first
    with pytest.raises(RollbackRefused, match="no earlier state"):
        back(store)
    done = back(store, 3)
    assert (state_hash(store), homes(store)["boat"]) == (merged, ACME)
    assert {"merged", "judged"} <= set(done.change.again["kind"])
    assert [row["undone"] for row in merge_documents([shard(store)], undone_too=True)] == [False]
    assert failures(store) == []


def test_what_was_parted_stays_apart_and_is_listed_as_undone(store: Store) -> None:
    second_night(store)
    decide(store, verdict_decisions(shard(store), [(ACME, CAT, "different")]), 4)
    back(store, 1)
    assert homes(store) == {"acme": ACME, "boat": BOAT, "cat": CAT}
    pair = tuple(sorted((ACME, BOAT)))
    assert undone(shard(store).transitions).select("a", "b").rows() == [pair]
    assert judgements(shard(store).transitions).rows() == [(*sorted((ACME, CAT)), "different")]
    assert merge_documents([shard(store)]) == []
    (listed,) = merge_documents([shard(store)], undone_too=True)
    assert (listed["undone"], listed["undone_at"]) == (True, "2026-01-06T00:00:00Z")
    assert merge(store, ACME, BOAT, 6)
    assert failures(store) == []


def test_a_merge_that_was_undone_since_is_in_force_again(store: Store) -> None:
    merged = merge(store, ACME, BOAT)
    undo(store, BOAT, 3)
    back(store, 2)
    assert (state_hash(store), homes(store)["boat"]) == (merged, ACME)
    assert undone(shard(store).transitions).is_empty()
    assert failures(store) == []


def test_nothing_to_do_publishes_nothing_and_unknown_or_pruned_snapshots_are_refused(store: Store) -> None:
    assert not back(store, 1).is_new
    merge(store, ACME, BOAT)
    back(store, 1)
    count = store.ledger.count("transitions")
    shutil.rmtree(store.home.snapshots("s0") / "1")
    assert not back(store, 1).is_new
    assert store.ledger.count("transitions") == count
    with pytest.raises(RollbackRefused, match="records no snapshot s0/9"):
        back(store, 9)
    shutil.rmtree(store.home.snapshots("s0") / "2")
    with pytest.raises(RollbackRefused, match=r"s0/2 is no longer kept.*: s0/3"):
        back(store, 2)


def test_new_rows_that_were_set_aside_stay_so_and_those_of_the_snapshot_do_not(store: Store) -> None:
    """A row of the snapshot counts again, since its state is served; the next night would fail with a new one."""
    old = store.ledger.scan("evidence").select("evidence_id").collect()["evidence_id"].sort()
    record(store, LATER, 3)
    night(store, 4)
    every = store.ledger.scan("evidence").select("evidence_id").collect()["evidence_id"]
    new = every.filter(~every.is_in(old.implode())).sort()
    rows = [{"kind": "set_aside", "scope": SCOPE, "evidence_ids": ids} for ids in ([old[0], new[0]], [new[1]])]
    rows.append({"kind": "readmitted", "scope": SCOPE, "evidence_ids": [new[1]]})
    decide(store, filled(pl.DataFrame(rows), DECISION), 4)
    back(store, 1)
    assert set_aside(shard(store).transitions).to_list() == [new[0]]
    assert failures(store) == []
    night(store, 6)
    assert shard(store).evidence_topic.height == len(every) - 1
    assert failures(store) == []


def test_a_kill_after_the_commit_point_is_completed_and_named(store: Store) -> None:
    merge(store, ACME, BOAT)
    first = back(store).manifest
    assert interrupted_rollback(store, "s0") is None
    move_current(store.home, "s0", 2)
    assert interrupted_rollback(store, "s0") == first.number
    recover(store, "s0")
    assert (number(store), interrupted_rollback(store, "s0")) == (first.number, None)
