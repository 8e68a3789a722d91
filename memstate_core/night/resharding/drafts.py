"""Builds the snapshots of new shards beside those that are served, one shard at a time.

Invariant: a snapshot gets its place when it is whole, verified and flushed. So a change that was killed goes on with
the shards that it had built, as long as they are of the same inputs.
"""

from __future__ import annotations

import shutil

import polars as pl
from msgspec import structs

from memstate_core.model.errors import SnapshotDamaged
from memstate_core.model.ledger_tables import DECISION
from memstate_core.model.scope import scopes_of_shard
from memstate_core.night.corrections import refuse_violations
from memstate_core.night.publish import draft
from memstate_core.night.rebuild import fold_again
from memstate_core.night.resharding.inputs import Inputs, reshard_decisions
from memstate_core.run.run import Run
from memstate_core.run.store import Store
from memstate_core.state.files import make_folder, sync_path
from memstate_core.state.snapshots import Snapshot, load_snapshot

NUMBER = 1
"""The number of the first snapshot of a shard."""


def built(store: Store, given: Inputs, shard: str) -> tuple[Snapshot, bool]:
    """The snapshot of a new shard, and whether it was built now.

    Args:
        store: the store, with the new layout and the model of the inputs.
        given: the inputs.
        shard: the new shard.

    Raises:
        CheckRefused: a correctness condition would not hold.
        SnapshotDamaged: what was written reads back otherwise.
        DiskFull: the disk has no room for it.
    """
    found = _left(store, given, shard)
    if found is not None:
        return found, False
    shutil.rmtree(store.home.snapshots(shard), ignore_errors=True)
    run = _folded(store, given, shard)
    try:
        made = draft(store, run)
        final = store.home.snapshots(shard) / str(NUMBER)
        make_folder(final.parent)
        made.path.rename(final)
        sync_path(final.parent)
        return Snapshot(final, made.manifest), True
    finally:
        run.end()


def _left(store: Store, given: Inputs, shard: str) -> Snapshot | None:
    """What a killed change built of the same inputs, if it is whole."""
    try:
        found = load_snapshot(store.home, shard, NUMBER)
    except SnapshotDamaged:
        return None
    made, head = found.manifest, found.manifest.ledger_head
    names = ("run_id", "now", "evidence_version", "accesses_version", "policy", "embedding_model", "made_by")
    same = all(getattr(made, name) == getattr(given.pinned, name) for name in names)
    known = head is not None and store.ledger.chain.holds(head)
    return found if same and known and not found.damage() else None


def own_decisions(given: Inputs, shard: str) -> pl.DataFrame:
    """All that a new shard records when it begins (columns DECISION)."""
    scopes = scopes_of_shard(given.unread["scope"].drop_nulls().unique(), shard, given.layout.count)
    unread = given.unread.filter(pl.col("scope").is_null() | pl.col("scope").is_in(scopes.implode()))
    return pl.concat([reshard_decisions(given, shard), unread]).select(DECISION.keys())


def _folded(store: Store, given: Inputs, shard: str) -> Run:
    """The run of a new shard, folded from the ledger, on which every condition holds."""
    pinned, scratch = structs.replace(given.pinned, shard=shard, number=0), store.home.work(shard)
    run = fold_again(store, pinned, pinned.policy, scratch, pinned.run_id, own_decisions(given, shard))
    try:
        found = refuse_violations(store, run)
        run.keep_checks([{"name": each.name, "passed": each.passed, "severity": "ERROR"} for each in found])
    except BaseException:
        run.end()
        raise
    return run
