"""Readers of the served snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contextlib import ExitStack

    from memstate_core.retrieve.reader import SnapshotReader
    from memstate_core.run.store import Store


def open_readers(store: Store, stack: ExitStack) -> list[SnapshotReader]:
    """The served snapshot of each shard, open until the stack closes.

    Raises:
        StoreNotFound: nothing was published yet.
    """
    from memstate_core.retrieve.reader import SnapshotReader
    from memstate_core.state.current import served

    return [stack.enter_context(SnapshotReader(snapshot)) for snapshot in served(store.home, store.shards)]
