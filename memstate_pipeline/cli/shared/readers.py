"""Readers of the served snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from contextlib import ExitStack

    from memstate_core.embed.encoder import Encoder
    from memstate_core.retrieve.reader import SnapshotReader
    from memstate_core.run.store import Store
    from memstate_core.state.damaged_shards import DamagedShards
    from memstate_core.state.snapshots import Snapshot


def open_readers(store: Store, stack: ExitStack) -> list[SnapshotReader]:
    """The served snapshot of each shard, open until the stack closes.

    Raises:
        StoreNotFound: nothing was published yet.
    """
    from memstate_core.state.current import served

    return [stack.enter_context(_opened(snapshot)) for snapshot in served(store.home, store.shards)]


def open_sound_readers(store: Store, stack: ExitStack) -> tuple[list[SnapshotReader], DamagedShards]:
    """The served snapshot of each shard that can be opened, until the stack closes, and the shards that are damaged.

    Raises:
        StoreNotFound: nothing was published yet.
        SnapshotDamaged: no shard can be opened.
    """
    from memstate_core.model.errors import SnapshotDamaged, StoreNotFound
    from memstate_core.state.current import served_where_sound

    snapshots, damaged = served_where_sound(store.home, store.shards)
    readers: list[SnapshotReader] = []
    for snapshot in snapshots:
        try:
            readers.append(stack.enter_context(_opened(snapshot)))
        except SnapshotDamaged as error:
            damaged = damaged.plus(error)
    damaged.require_any(None, [reader.snapshot.manifest.shard for reader in readers])
    if not readers:
        raise StoreNotFound(str(store.home.root))
    return readers, damaged


def _opened(snapshot: Snapshot) -> SnapshotReader:
    """The reader of a served snapshot; of the one that is served now if that one was removed meanwhile."""
    from memstate_core.model.errors import SnapshotDamaged
    from memstate_core.retrieve.reader import SnapshotReader
    from memstate_core.state.current import current_snapshot

    while True:
        try:
            return SnapshotReader(snapshot)
        except (SnapshotDamaged, FileNotFoundError):
            now = current_snapshot(snapshot.home, snapshot.manifest.shard)
            if now is None or now.name == snapshot.name:
                raise
            snapshot = now


def served_encoder(store: Store, readers: Sequence[SnapshotReader]) -> Encoder:
    """The encoder of what is served, which settings that changed since do not change."""
    from memstate_core.retrieve.reader import served_model
    from memstate_core.run.store import with_model

    return with_model(store, served_model(readers)).encoder


def missing_lines(answer: Mapping[str, Any]) -> Iterator[str]:
    """A warning for each shard that an answer lacks."""
    for missing in answer.get("missing_shards", []):
        yield f"warning: nothing of shard {missing['shard']} is in this answer: {missing['message']}"
