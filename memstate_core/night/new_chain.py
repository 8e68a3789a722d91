"""Begins the chain of the ledger anew after it alone was lost or cut, and records that for good.

Without the chain nothing says that files of the ledger are as they were written. So the rest is proven first: the
lines that are left, every row, the fold of the ledger, and all that `memstate verify` compares with the served state.

Invariant: a chain is begun anew only from a ledger that folds to the served state, and never without its record.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from msgspec import convert

from memstate_core.model.errors import ChainNotBegun
from memstate_core.night.ledger_audit import UNREADABLE, table_problems
from memstate_core.night.verify import verify
from memstate_core.run.begin import last_published_payload
from memstate_core.run.store import Store
from memstate_core.state.current import named_number
from memstate_core.state.ledger.beginning import Beginning
from memstate_core.state.ledger.chain import CHAIN
from memstate_core.state.ledger.commits import added_data, log_files, version_of
from memstate_core.state.ledger.ledger import TABLES
from memstate_core.state.snapshots import Manifest, load_snapshot, numbers

_Manifests = Mapping[str, Manifest]


def begin_chain_anew(store: Store, at: datetime, by: str, why: str) -> Beginning:
    """Proves the ledger without its chain and begins the chain anew; the caller holds the store's lock.

    If a killed process did so and nothing was published since, its record is returned.

    Args:
        store: the store.
        at: the time on record.
        by: who.
        why: the reason on record.

    Returns:
        The record, which is the chain's first line.

    Raises:
        ChainNotBegun: the chain is whole, or something else is damaged; nothing was changed.
        SnapshotDamaged: a snapshot cannot be opened; nothing was changed.
        StoreLocked: another process kept the ledger's lock for longer than the wait allows.
    """

    def prove() -> Beginning:
        return _proven(store, manifests, lost, Beginning(at=at, by=by, why=why, lost=(), heads=(), unproven={}))

    try:
        manifests = _published(store)
        heads = _heads(store, manifests)
        lost = _lost(store, heads)
        if not lost and (begun := store.ledger.chain.begun) and not any(map(store.ledger.chain.holds, heads)):
            return begun[-1]
        if not lost:
            raise _refused(store, ["it is whole"])
        store.ledger.begin_chain_anew("memstate rebuild --new-chain", prove)
    except UNREADABLE as error:
        raise _refused(store, [f"the ledger cannot be read: {type(error).__name__}"]) from error
    return store.ledger.chain.begun[-1]


def _proven(store: Store, manifests: _Manifests, lost: list[str], asked: Beginning) -> Beginning:
    """The record to make, after everything else was found to be as it must be."""
    problems = store.ledger.chain.changed() + _broken_logs(store) + table_problems(store, None)
    for shard, manifest in manifests.items() if not problems else ():
        snapshot = load_snapshot(store.home, shard, manifest.number)
        if named_number(store.home, shard) != manifest.number:
            problems.append(f"{shard}: CURRENT does not name {manifest.number}, the last on record")
        verdicts = verify(store, snapshot, chain=False)
        problems += [f"{snapshot.name} {each.name}: {each.detail}" for each in verdicts if not each.passed]
    if problems:
        raise _refused(store, problems)
    return Beginning(
        at=asked.at, by=asked.by, why=asked.why, lost=tuple(lost), heads=tuple(_heads(store, manifests)),
        unproven=_unproven(store, manifests.values()),
    )  # fmt: skip


def _refused(store: Store, problems: list[str]) -> ChainNotBegun:
    return ChainNotBegun(str(store.ledger.root), problems)


def _published(store: Store) -> dict[str, Manifest]:
    """The last manifest on record of each shard that has one."""
    payloads = {shard: last_published_payload(store, shard) for shard in store.shards}
    return {shard: convert(payload, Manifest) for shard, payload in payloads.items() if payload is not None}


def _heads(store: Store, manifests: _Manifests) -> list[str]:
    """The entries of the chain that kept snapshots, and the last ones on record, name."""
    kept = [load_snapshot(store.home, shard, number) for shard in store.shards for number in numbers(store.home, shard)]
    named = [*manifests.values(), *(snapshot.manifest for snapshot in kept)]
    return sorted({manifest.ledger_head for manifest in named if manifest.ledger_head is not None})


def _lost(store: Store, heads: list[str]) -> list[str]:
    """What is wrong with the chain itself, in a few words."""
    chain = store.ledger.chain
    problems = chain.lost(heads)
    if chain.head is None and any(log_files(store.ledger.root / table) for table in TABLES):
        return [f"{CHAIN} was missing or empty"]
    return [*problems[:3], *([f"{len(problems) - 3} more"] if len(problems) > 3 else [])]


def _broken_logs(store: Store) -> list[str]:
    """Commits that cannot be read, and gaps between them."""
    problems = []
    for table in TABLES:
        folder = store.ledger.root / table
        versions = [version for name in log_files(folder) if (version := version_of(name)) is not None]
        if versions != list(range(len(versions))):
            problems.append(f"{table}: commits are missing")
        for version in versions:
            try:
                added_data(folder, version)
            except (OSError, ValueError, KeyError) as error:
                problems.append(f"{table}: commit {version} cannot be read: {error}")
    return problems


def _unproven(store: Store, manifests: Iterable[Manifest]) -> dict[str, int]:
    """The rows of each table that are in no served snapshot, which no fold was compared with."""
    served = list(manifests)
    read = {
        "evidence": [manifest.evidence_version for manifest in served],
        "accesses": [manifest.accesses_version for manifest in served],
    }
    counts = {table: store.ledger.count(table) - _rows(store, table, found) for table, found in read.items()}
    return counts | {table: store.ledger.count(table) for table in ("quarantine", "quarantine_actions")}


def _rows(store: Store, table: str, versions: list[int | None]) -> int:
    """The rows of a table that every shard has read."""
    known = [version for version in versions if version is not None]
    if not known or len(known) < len(versions):
        return 0
    return store.ledger.scan(table, min(known)).collect().height
