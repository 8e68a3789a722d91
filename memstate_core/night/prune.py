"""Removes old snapshots of a shard: beyond a number, an age or a total size, whichever comes first.

The served snapshot and the one that the ledger records as published stay, whatever the limits say. Those of shards that
are no longer served, since the number of shards was changed, go at once.
"""

from __future__ import annotations

import shutil
from datetime import datetime, timedelta

from memstate_core.model.errors import SnapshotDamaged
from memstate_core.policy.sections.store import StoreSettings
from memstate_core.run.begin import last_published
from memstate_core.run.store import Store
from memstate_core.state.current import current_number
from memstate_core.state.layout import remove_retired
from memstate_core.state.sizes import size_of
from memstate_core.state.snapshots import load_snapshot, numbers


def prune(store: Store, shard: str, now: datetime) -> None:
    """Removes what the settings no longer keep.

    Args:
        store: the store.
        shard: whose snapshots.
        now: the logical time of the run, from which ages count.
    """
    remove_retired(store.home, store.layout)
    settings = store.settings.store
    kept = numbers(store.home, shard)
    due = {*kept[: -settings.keep_snapshots], *_old(store, shard, now), *_beyond(store, shard, settings)}
    for number in sorted(due - {current_number(store.home, shard), last_published(store, shard)}):
        shutil.rmtree(store.home.snapshots(shard) / str(number))


def _old(store: Store, shard: str, now: datetime) -> list[int]:
    """Snapshots of nights before the oldest that is kept; one whose manifest cannot be read has no age."""
    days = store.settings.store.keep_snapshot_days
    found = []
    for number in numbers(store.home, shard) if days else []:
        try:
            if load_snapshot(store.home, shard, number).manifest.now < now - timedelta(days=days):
                found.append(number)
        except SnapshotDamaged:
            continue
    return found


def _beyond(store: Store, shard: str, settings: StoreSettings) -> list[int]:
    """Snapshots that no longer fit into the total size beside all newer ones."""
    if not settings.keep_snapshot_mib:
        return []
    found, left = [], settings.keep_snapshot_mib << 20
    for number in reversed(numbers(store.home, shard)):
        left -= size_of(store.home.snapshots(shard) / str(number))
        if left < 0:
            found.append(number)
    return found
