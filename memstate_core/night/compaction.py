"""Compaction and vacuum of the ledger: nights leave many small files, and joined ones stay for older versions.

Nothing that the store says changes (law L3): joined files are compared row by row with those that they replace, and
every shard is folded before and after. A version that a kept snapshot names keeps its files, and so does the one that
its run started from, so that rollbacks, as-of queries and checks read what they read before.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from memstate_core.model.errors import RebuildMismatch
from memstate_core.model.progress import tracked
from memstate_core.night.backup.capture import no_capture
from memstate_core.night.checks.recorded import bases
from memstate_core.night.rebuild import fold_recorded
from memstate_core.run.base_check import require_chain
from memstate_core.run.begin import last_published
from memstate_core.run.publications import publications
from memstate_core.run.store import Store
from memstate_core.state.ledger.ledger import TABLES
from memstate_core.state.ledger.vacuum import Vacuumed, vacuum
from memstate_core.state.snapshots import Manifest, numbers

READERS = timedelta(hours=1)
"""How long files stay after they left the newest version, for readers that have listed them."""


@dataclass(frozen=True)
class Compaction:
    """What became of the ledger.

    Attributes:
        states: the state hash of each published shard, before and after.
        joined: the number of data files of each table that was compacted, before and after.
        vacuumed: what was removed, by table.
    """

    states: Mapping[str, str]
    joined: dict[str, tuple[int, int]] = field(default_factory=dict)
    vacuumed: dict[str, Vacuumed] = field(default_factory=dict)


def compact_ledger(store: Store, now: datetime) -> Compaction:
    """Compacts the tables of the ledger and removes what nothing reads; the caller holds the store's lock.

    Args:
        store: the store.
        now: the machine's time; files that left a table within `READERS` of it stay.

    Raises:
        StoreLocked: a backup is in progress, or an import held the ledger's lock for too long.
        LedgerDamaged: the ledger is not as it was written; nothing was changed.
        CompactionRefused: joined files have other rows; they were set aside.
        RebuildMismatch: the ledger folds to another state than the published one.
        DiskFull: the disk has no room for the joined files.
    """
    if not store.home.ledger.is_dir():
        return Compaction({})
    holder = f"process {os.getpid()} (compacting the ledger)"
    with no_capture(store.home, holder):
        done = Compaction(_folded(store))
        versions = _needed_versions(store)
        for table in tracked(list(TABLES), "compact", len(TABLES), "tables"):
            with store.ledger.writing(holder):
                before = len(store.ledger.files(table))
                if store.ledger.compact(table):
                    done.joined[table] = before, len(store.ledger.files(table))
                done.vacuumed[table] = vacuum(store.ledger, table, versions[table], now - READERS)
        _folded(store)
    return done


def _folded(store: Store) -> dict[str, str]:
    """The state that the ledger folds to, by shard; each is the one that it records as published."""
    require_chain(store)
    store.ledger.chain.require_sound()
    states = {}
    for shard in store.shards:
        if last_published(store, shard) is None:
            continue
        with tempfile.TemporaryDirectory() as folder:
            folded = fold_recorded(store, shard, Path(folder) / "fold", "compaction")
        if folded.state_hash != folded.recorded.state_hash:
            raise RebuildMismatch(shard, folded.recorded.state_hash, folded.state_hash)
        states[shard] = folded.state_hash
    return states


def _needed_versions(store: Store) -> dict[str, set[int]]:
    """The versions of each table that kept snapshots, the last published one, and what they started from refer to."""
    manifests = [manifest for shard in store.shards for manifest in _manifests(store, shard)]
    named = {
        "evidence": {manifest.evidence_version for manifest in manifests},
        "accesses": {manifest.accesses_version for manifest in manifests},
    }
    return {table: {version for version in named.get(table, set()) if version is not None} for table in TABLES}


def _manifests(store: Store, shard: str) -> Iterable[Manifest]:
    kept = {*numbers(store.home, shard), last_published(store, shard)}
    yield from (manifest for _, manifest in publications(store, shard) if manifest.number in kept)
    yield from bases(store, shard, sorted(number for number in kept if number is not None))
