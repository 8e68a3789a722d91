"""Comparing what a run starts from with what was written, before anything follows from it.

Invariant: no run starts from a damaged snapshot or ledger, so damage never reaches a published snapshot.
"""

from __future__ import annotations

from contextlib import suppress

import polars as pl

from memstate_core.model.errors import LedgerDamaged, SnapshotDamaged
from memstate_core.model.quantity import quantity
from memstate_core.run.publications import manifest_problems, recorded_manifest
from memstate_core.run.run import Run
from memstate_core.run.store import Store
from memstate_core.run.view import shard_evidence
from memstate_core.state.current import current_snapshot, named_number
from memstate_core.state.snapshots import Manifest, Snapshot, load_snapshot

_SHOWN = 3


def sound_base(store: Store, shard: str, earlier: int | None = None) -> Snapshot | None:
    """The served snapshot, after reading every byte of it and of the ledger; None before the first one.

    Args:
        store: the store.
        shard: which shard.
        earlier: the number of a snapshot to read and return instead of the served one.

    Raises:
        LedgerDamaged: the ledger lacks something that was acknowledged, or holds other bytes than were written.
        SnapshotDamaged: CURRENT names no snapshot, the files of the snapshot are not what its manifest says, or the
            manifest is not the one that the ledger recorded.
    """
    number = named_number(store.home, shard)
    served = None if number is None else load_snapshot(store.home, shard, number)
    require_ledger(store, None if served is None else served.manifest)
    base = served if earlier is None else load_snapshot(store.home, shard, earlier)
    if base is not None and (problems := base.damage() or _unrecorded(store, base.manifest)):
        raise SnapshotDamaged(base.name, problems)
    return base


def _unrecorded(store: Store, manifest: Manifest) -> list[str]:
    """What a manifest says and the ledger did not record with it."""
    recorded = recorded_manifest(store, manifest.shard, manifest.number)
    return [f"manifest.json: {problem}" for problem in manifest_problems(manifest, recorded)]


def require_chain(store: Store) -> None:
    """Refuses a chain of the ledger that lacks what sound served snapshots name, before a writer begins another one.

    Raises:
        LedgerDamaged: the chain lacks entries or cannot be read.
    """
    heads = list[str]()
    for shard in store.shards:
        with suppress(SnapshotDamaged):
            served = current_snapshot(store.home, shard)
            heads += [] if served is None or served.manifest.ledger_head is None else [served.manifest.ledger_head]
    if lost := store.ledger.chain.lost(heads):
        raise LedgerDamaged(str(store.ledger.root), lost)


def require_ledger(store: Store, manifest: Manifest | None) -> None:
    """Reads every byte of the ledger and compares it with what was recorded when it was written.

    Args:
        store: the store.
        manifest: of a snapshot that was made of the ledger.

    Raises:
        LedgerDamaged: the ledger lacks something, or holds other bytes than were written.
    """
    head = None if manifest is None else manifest.ledger_head
    if head is not None and (lost := store.ledger.chain.lost([head])):
        raise LedgerDamaged(str(store.ledger.root), lost)
    if store.ledger.root.is_dir():
        with store.ledger.writing("the beginning of a run"):
            pass  # a ledger from before the chain gets it, and a killed writer's last commit is completed
    store.ledger.chain.require_sound(head)
    if manifest is None:
        return
    needed = {"evidence": manifest.evidence_version, "accesses": manifest.accesses_version, "transitions": 0}
    older = [
        f"{table}: its version is {found}, {manifest.shard}/{manifest.number} was made of version {version}"
        for table, version in needed.items()
        if version is not None and ((found := store.ledger.version(table)) is None or found < version)
    ]
    if older:
        raise LedgerDamaged(str(store.ledger.root), older)


def require_evidence(store: Store, run: Run, known: pl.Series) -> None:
    """Compares the evidence that a run reads with its own digests and with what the base was made of.

    Args:
        store: the store.
        run: the run, which pinned a version of the evidence.
        known: the ids of the evidence that the base was made of.

    Raises:
        LedgerDamaged: evidence of the base is missing, or evidence has another id than its content gives.
    """
    held = shard_evidence(store.ledger, run, ["evidence_id", "content_sha256"])
    other = held.filter(pl.col("evidence_id").ne_missing(pl.col("content_sha256").str.head(32)))["evidence_id"]
    missing = known.filter(~known.is_in(held["evidence_id"].implode())).sort()
    found = {"of the served snapshot missing": missing, "with another id than the content gives": other}
    problems = [
        f"evidence: {quantity(len(ids), 'rows')} {what}, such as {', '.join(map(str, ids.head(_SHOWN)))}"
        for what, ids in found.items()
        if len(ids)
    ]
    if problems:
        raise LedgerDamaged(str(store.ledger.root), problems)
