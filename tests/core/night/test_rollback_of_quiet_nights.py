"""Rollback after nights that decided nothing: the time went on, the policy changed, or topics were used."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from memstate_core.model.errors import RollbackRefused
from memstate_core.model.ledger_tables import ACCESSES
from memstate_core.model.text import parse_moment
from memstate_core.night.rebuild import rebuild
from memstate_core.night.rollback import RolledBack, interrupted_rollback, roll_back
from memstate_core.night.verify import verify
from memstate_core.run.begin import recover
from memstate_core.run.store import Store, open_store
from memstate_core.state.current import move_current
from memstate_core.state.snapshots import Manifest
from tests.core.night import corrections
from tests.core.night.corrections import BOAT, LATER, SCOPE, shard, state_hash
from tests.core.revise.nights import night_without_duplicates as night
from tests.core.revise.nights import record_by_key as record
from tests.core.strategies import day

pytestmark = pytest.mark.slow

first_night, store = corrections.first_night, corrections.store
LAST = (parse_moment("9999-12-31T00:00:00Z") - day(0)).days
"""A night that somebody began with a wrong year."""


def back(store: Store, number: int | None = None) -> RolledBack:
    served = shard(store)
    at = max(day(9), served.snapshot.manifest.now)
    done = roll_back(store, served, f"rollback-{served.snapshot.manifest.number}", at, number, "a wrong clock")
    assert done.manifest.state_hash == done.to.state_hash
    assert (done.manifest.now, failures(store)) == (done.to.now, [])
    return done


def failures(store: Store) -> list[Any]:
    return [verdict for verdict in verify(store, shard(store).snapshot) if not verdict.passed]


def manifest(store: Store) -> Manifest:
    return shard(store).snapshot.manifest


def used(store: Store, at: float) -> None:
    row = {"access_id": f"access-{at}", "scope": SCOPE, "topic_id": BOAT, "at": day(at), "failed": False}
    with store.ledger.writing("a test"):
        store.ledger.append("accesses", pl.DataFrame([{**dict.fromkeys(ACCESSES), **row}], ACCESSES), f"access-{at}")


@pytest.mark.parametrize("at", [4, LAST])
def test_a_night_that_only_moved_the_time_is_rolled_back_and_the_next_one_continues(store: Store, at: int) -> None:
    first = manifest(store)
    night(store, at)
    assert manifest(store).state_hash != first.state_hash
    done = back(store)
    assert (done.is_new, done.to.number, done.manifest.number) == (True, 1, 3)
    assert (done.change.undone.height, done.change.again.height) == (0, 0)
    assert not back(store, 1).is_new
    rebuild(store, "s0", "again")
    assert (state_hash(store), failures(store)) == (first.state_hash, [])
    record(store, LATER, 3)
    night(store, 5)
    assert "Dune buggy" in shard(store).topics["title"]
    assert (manifest(store).now, failures(store)) == (day(5), [])


def test_repeating_it_goes_back_night_by_night_and_each_rollback_can_be_reversed(store: Store) -> None:
    hashes = [state_hash(store)]
    for at in (3, 4):
        night(store, at)
        hashes.append(state_hash(store))
    assert len(set(hashes)) == 3
    assert [back(store).to.number, back(store).to.number] == [2, 1]
    with pytest.raises(RollbackRefused, match="no earlier state"):
        back(store)
    assert back(store, 3).manifest.state_hash == hashes[2]
    assert back(store, 5).manifest.state_hash == hashes[0]


def test_a_night_that_only_counted_accesses_is_rolled_back_and_the_next_one_counts_them(store: Store) -> None:
    first = state_hash(store)
    used(store, 1.5)
    night(store, 2)
    second = state_hash(store)
    assert second != first
    assert back(store).is_new
    assert state_hash(store) == first
    night(store, 2)
    assert (state_hash(store), failures(store)) == (second, [])


def test_a_night_under_another_policy_is_rolled_back(store: Store) -> None:
    first = state_hash(store)
    (store.home.root / "memstate.toml").write_text("[policy]\nsalience_half_life_days = 7\n")
    other = open_store(store.home.root, {})
    night(other, 2)
    second = state_hash(other)
    assert second != first
    assert back(other).is_new
    assert manifest(other).policy["salience_half_life_days"] != 7
    night(other, 2)
    assert (state_hash(other), failures(other)) == (second, [])


def test_a_kill_after_the_commit_point_is_completed(store: Store) -> None:
    night(store, 4)
    done = back(store)
    move_current(store.home, "s0", 2)
    assert interrupted_rollback(store, "s0") == done.manifest.number
    recover(store, "s0")
    assert (state_hash(store), failures(store)) == (done.to.state_hash, [])
