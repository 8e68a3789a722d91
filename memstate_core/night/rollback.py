"""Rollback: a new snapshot serves the state of an earlier one, and the decisions since then are undone.

CURRENT never moves backwards. A rollback is a run like a correction: it starts from the earlier snapshot, records that
the decisions since are no longer in effect, folds the ledger again, and publishes only if that gives the earlier state
hash. Evidence and accesses stay in the ledger; those that came since belong to the next night.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import polars as pl

from memstate_core.model.errors import RebuildMismatch, RollbackRefused
from memstate_core.night.corrections import follow, refuse_violations
from memstate_core.night.publish import publish
from memstate_core.revise.rollback import Rollback, rollback_decisions, rollback_to
from memstate_core.run.begin import begin_run, named_or_zero
from memstate_core.run.publications import publications, publications_in_effect
from memstate_core.run.run import Run
from memstate_core.run.served_state import Served
from memstate_core.run.store import Store, with_model
from memstate_core.state.fold.rollbacks import ROLLED_BACK
from memstate_core.state.graph import open_graph
from memstate_core.state.snapshots import Manifest, load_snapshot, numbers
from memstate_core.state.state_hash import state_hash

ROLLBACK = "rollback-"
"""How the run ids of rollbacks begin; those of other runs do not."""


@dataclass(frozen=True)
class RolledBack:
    """A rollback that was published, or that had nothing to change.

    Attributes:
        to: the manifest of the snapshot whose state is served.
        before: that of the snapshot that was served before.
        manifest: that of the snapshot that serves it now.
        change: what it changed.
    """

    to: Manifest
    before: Manifest
    manifest: Manifest
    change: Rollback

    @property
    def is_new(self) -> bool:
        """Whether anything changed."""
        return self.manifest.number != self.before.number

    @property
    def evidence_left(self) -> int:
        """How many pieces of evidence are no longer in the served state, and belong to the next night."""
        return max(0, self.before.counts["evidence"] - self.manifest.counts["evidence"])


def roll_back(store: Store, served: Served, run_id: str, at: datetime, number: int | None, why: str) -> RolledBack:
    """Serves the state of an earlier snapshot of a shard; the caller holds the store's lock.

    Args:
        store: the store.
        served: the shard.
        run_id: the run's name in the ledger.
        at: the time of the decision; the state keeps its own logical time.
        number: the number of the snapshot; None for the newest one before the served one with another state.
        why: the reason on record.

    Raises:
        RollbackRefused: the ledger records no such snapshot, or it is no longer kept.
        SnapshotDamaged: its files are not as they were published.
        LedgerDamaged: the ledger lacks something, or holds other bytes than were written.
        RebuildMismatch: the ledger folds to another state than that of the snapshot; nothing was published.
        CheckRefused: a correctness condition would not hold; nothing was published.
        DiskFull: the disk has no room for the run.
    """
    seq, to = _target(store, served.snapshot.manifest, number)
    change = rollback_to(served, seq, to.number)
    before = served.snapshot.manifest
    if not (change.undone.height or change.again.height) and _state(before) == _state(to):
        return RolledBack(to, before, before, change)
    _require_kept(store, to)
    rows = rollback_decisions(served, change, seq, to.number, _digested(store, to), why)
    return RolledBack(to, before, _published(store, to, run_id, at, rows), change)


def interrupted_rollback(store: Store, shard: str) -> int | None:
    """The number of a rollback's snapshot that the ledger records and that a killed process did not serve yet."""
    kept = numbers(store.home, shard)
    if not kept or named_or_zero(store, shard) == kept[-1]:
        return None
    found = publications(store, shard)
    if not found or found[-1][1].number != kept[-1]:
        return None
    rows = store.ledger.scan("transitions").filter(pl.col("shard") == shard, pl.col("run_id") == found[-1][1].run_id)
    return kept[-1] if ROLLED_BACK in rows.select("kind").collect()["kind"] else None


def _target(store: Store, served: Manifest, number: int | None) -> tuple[int, Manifest]:
    """The publication to roll back to, with the number of its transition."""
    if number is None:
        found = [one for one in publications_in_effect(store, served.shard) if _state(one[1]) != _state(served)]
        missing = "the ledger records no earlier state"
    else:
        found = [one for one in publications(store, served.shard) if one[1].number == number]
        missing = f"the ledger records no snapshot {served.shard}/{number}"
    if not found:
        raise RollbackRefused(served.shard, missing, numbers(store.home, served.shard))
    return found[-1]


def _require_kept(store: Store, to: Manifest) -> None:
    kept = numbers(store.home, to.shard)
    if to.number not in kept:
        raise RollbackRefused(to.shard, f"{to.shard}/{to.number} is no longer kept", kept)


def _state(manifest: Manifest) -> tuple[datetime, str]:
    """The logical time and the state hash; nights without a decision change them, too."""
    return manifest.now, manifest.state_hash


def _digested(store: Store, to: Manifest) -> pl.Series:
    """The ids of the evidence and accesses of a snapshot's versions of the ledger."""
    versions = (("evidence", "evidence_id", to.evidence_version), ("accesses", "access_id", to.accesses_version))
    tables = [(store.ledger.scan(table, at), key) for table, key, at in versions if at is not None]
    return pl.concat([pl.Series("id", [], pl.String), *(rows.select(id=key).collect()["id"] for rows, key in tables)])


def _published(store: Store, to: Manifest, run_id: str, at: datetime, rows: pl.DataFrame) -> Manifest:
    as_then = with_model(store, to.embedding_model)
    run = begin_run(as_then, to.shard, run_id, to.now, pinned=to, decided_at=at, decided=rows)
    try:
        follow(as_then, run)
        _require_state(run, to)
        refuse_violations(as_then, run)
        publish(as_then, run)
        return load_snapshot(store.home, to.shard, run.facts.number).manifest
    finally:
        run.end()


def _require_state(run: Run, to: Manifest) -> None:
    with open_graph(run.graph, read_only=True) as graph:
        found = state_hash(graph)
    if found != to.state_hash:
        raise RebuildMismatch(to.shard, to.state_hash, found)
