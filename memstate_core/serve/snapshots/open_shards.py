"""Which shards are open, in the order of their last use, and how many requests use each snapshot.

It opens and closes nothing: its methods return what the caller has to close. Invariant: a snapshot that is pinned is
never among that. A cache of cachetools would evict a shard as it inserts another, in use or not.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Iterable

from memstate_core.serve.snapshots.generation import SharedReader


class OpenShards:
    """The open shards of a server; thread-safe. A shard without a snapshot is open as None.

    Args:
        bound: how many stay open.
    """

    def __init__(self, bound: int) -> None:
        self._bound, self._lock = bound, threading.Lock()
        self._open: OrderedDict[str, SharedReader | None] = OrderedDict()
        self._pins: Counter[SharedReader] = Counter()

    def held(self) -> dict[str, SharedReader | None]:
        """The open shards, the least recently used first."""
        with self._lock:
            return dict(self._open)

    def count(self) -> int:
        """How many snapshots are open, those that were replaced and are still used included."""
        with self._lock:
            return len({reader for reader in (*self._open.values(), *self._pins) if reader is not None})

    def pin(self, shard: str) -> list[SharedReader] | None:
        """The snapshot of a shard, for a request to use; empty without one, None if the shard is not open."""
        with self._lock:
            return self._pinned(shard) if shard in self._open else None

    def pin_all(self) -> list[SharedReader]:
        """All open snapshots, for use."""
        with self._lock:
            return [reader for shard in list(self._open) for reader in self._pinned(shard)]

    def put(self, shard: str, reader: SharedReader | None) -> tuple[list[SharedReader], list[str]]:
        """Has a shard open, and pins it; also returns the shards that are open beyond the bound."""
        with self._lock:
            self._open[shard] = reader
            return self._pinned(shard), list(self._open)[: max(0, len(self._open) - self._bound)]

    def unpin(self, readers: Iterable[SharedReader]) -> list[SharedReader]:
        """Ends a use; returns those snapshots that nobody uses any more and that are not open."""
        with self._lock:
            return [reader for reader in readers if self._unpinned(reader) and not self._is_open(reader)]

    def drop(self, shard: str) -> list[SharedReader]:
        """Has a shard open no longer; returns its snapshot if nobody uses it."""
        with self._lock:
            reader = self._open.pop(shard, None)
            return [] if reader is None or self._pins[reader] else [reader]

    def replace(
        self, shard: str, before: SharedReader | None, fresh: SharedReader | None
    ) -> tuple[bool, list[SharedReader]]:
        """Puts a snapshot in the place of another, if that is open still; also returns the one that nobody uses."""
        with self._lock:
            is_open = shard in self._open and self._open[shard] is before
            if is_open:
                self._open[shard] = fresh
            left = before if is_open else fresh
            return is_open, [] if left is None or self._pins[left] else [left]

    def is_used(self, shard: str) -> bool:
        """Whether a shard is open, or a request uses a snapshot of it."""
        with self._lock:
            return shard in self._open or any(shard_of(reader) == shard for reader in self._pins)

    def is_served(self, reader: SharedReader) -> bool:
        """Whether a snapshot is the open one of its shard."""
        with self._lock:
            return self._is_open(reader)

    def _is_open(self, reader: SharedReader) -> bool:
        return self._open.get(shard_of(reader)) is reader

    def _pinned(self, shard: str) -> list[SharedReader]:
        self._open.move_to_end(shard)
        reader = self._open[shard]
        if reader is None:
            return []
        self._pins[reader] += 1
        return [reader]

    def _unpinned(self, reader: SharedReader) -> bool:
        self._pins[reader] -= 1
        if self._pins[reader] > 0:
            return False
        del self._pins[reader]
        return True


def shard_of(reader: SharedReader) -> str:
    """The shard of a snapshot."""
    return reader.snapshot.manifest.shard
