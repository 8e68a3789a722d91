"""Serves the shards that requests need: each is opened by the first of them, and the least recently used are closed.

A request uses the snapshots that it began with to its end. One that spans more shards than may be open keeps all of
them open meanwhile.

Invariant: as for `memstate_core.serve.snapshots.swap`; and a shard that is open, or that a request uses, is held.
"""

from __future__ import annotations

import gc
import logging
import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Protocol

from cachetools import LRUCache

from memstate_core.model.errors import MemstateError
from memstate_core.model.scope import Layout
from memstate_core.retrieve.reader import served_model
from memstate_core.run.store import Store
from memstate_core.serve.snapshots.generation import Generation, SharedReader
from memstate_core.serve.snapshots.open_shards import OpenShards, shard_of
from memstate_core.serve.snapshots.question_encoder import QuestionEncoder
from memstate_core.serve.snapshots.shard_states import ShardState, shard_states
from memstate_core.serve.snapshots.swap import Serving, T
from memstate_core.serve.telemetry.counters import Count, Counters
from memstate_core.state.current import current_number
from memstate_core.state.damaged_shards import DamagedShards
from memstate_core.state.erasure_mark import erasure_mark
from memstate_core.state.snapshots import load_snapshot

_MODELS = 2
"""Models that are kept, since shards may have different ones while a store changes to another."""

_log = logging.getLogger("memstate.serve")


class Source(Protocol):
    """Where shards come from."""

    def bring(self, shard: str) -> None:
        """Has what is to be served of a shard in the home, and holds it there; raises MemstateError or OSError."""

    def hold(self, shard: str) -> None:
        """Holds what the home has of a shard; raises OSError."""

    def let_go(self, shard: str) -> None:
        """Holds a shard no longer."""

    def has_switched(self) -> bool:
        """Whether the store has other shards than it had; the home has them on record then."""


class ServingOnDemand(Serving):
    """Serves what CURRENT of the shards in use names; thread-safe.

    Args:
        store: the store.
        source: where shards come from.
        bound: how many shards stay open.
        counters: what counts swaps.
        settle: as for `Serving`.
    """

    def __init__(
        self, store: Store, source: Source, bound: int, counters: Counters | None = None, *, settle: bool = False
    ) -> None:
        super().__init__(store, counters, settle=settle)
        self._source, self._shards = source, OpenShards(bound)
        self._opening: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._encoders: LRUCache[str, QuestionEncoder] = LRUCache(_MODELS)
        self._is_warm = False

    @property
    def is_ready(self) -> bool:
        """Always: what is not open is opened by the request that needs it."""
        return True

    @property
    def current(self) -> Generation | None:
        """What is open; None if nothing is."""
        readers = tuple(reader for reader in self._shards.held().values() if reader is not None)
        return self._generation(readers) if readers else None

    @property
    def named(self) -> str:
        """The snapshots that CURRENT of the open shards names, which may differ from those served."""
        numbers = ((shard, current_number(self._store.home, shard)) for shard in self.in_use())
        return ",".join(f"{shard}/{number}" for shard, number in numbers if number is not None)

    @property
    def open_snapshots(self) -> int:
        """The number of open snapshots."""
        return self._shards.count()

    def in_use(self) -> list[str]:
        """The open shards, those without a snapshot included."""
        return list(self._shards.held())

    def states(self) -> dict[str, ShardState]:
        """The state of each shard, without what is wrong at the source."""
        held = self._shards.held()
        found = shard_states(self._store.shards, [each for each in held.values() if each is not None], {}, "not_open")
        return found | {shard: ShardState("empty") for shard, reader in held.items() if reader is None}

    def begin(self, shards: Sequence[str]) -> None:
        """Opens shards that are in the home already, and asks the source for nothing."""
        for shard in shards:
            with suppress(MemstateError, OSError):
                self._unpin(self._pinned(shard, self._source.hold))

    def read(self, work: Callable[[Generation], T], scopes: Collection[str] | None = None) -> T:
        """Runs `work` on the snapshots of the shards that hold some scopes; of every shard for None.

        Raises:
            MemstateError: one of these shards cannot be fetched or opened.
        """
        with self._reading(scopes) as generation:
            try:
                return work(generation)
            except (OSError, RuntimeError):
                with suppress(MemstateError):
                    self.refresh()
                if all(self._shards.is_served(reader) for reader in generation.readers):
                    raise
        with self._reading(scopes) as generation:
            return work(generation)

    def refresh(self) -> bool:
        """Opens what CURRENT of the open shards names now, in place of what is open; whether anything changed.

        Raises:
            SnapshotDamaged: a snapshot cannot be opened; the one before stays in service, unless it may hold what was
                erased.
        """
        with self._refreshing:
            mark, changed, errors = erasure_mark(self._store.home), False, list[MemstateError]()
            layout = self._store.layout
            for shard, reader in self._shards.held().items():
                try:
                    changed |= self._follow(layout, shard, reader)
                except MemstateError as error:
                    errors.append(error)
                    if mark != self._seen:
                        self._drop(shard)
            self._seen = mark
            self._warm_once()
        if errors:
            raise errors[0]
        return changed

    def close(self) -> None:
        """Stops serving; snapshots in use are closed by their last request."""
        for shard in self.in_use():
            self._drop(shard)

    @contextmanager
    def _reading(self, scopes: Collection[str] | None) -> Iterator[Generation]:
        if erasure_mark(self._store.home) != self._seen:
            with suppress(MemstateError):
                self.refresh()
        readers = self._pinned_all(scopes)
        try:
            yield self._generation(tuple(readers))
        finally:
            self._unpin(readers)

    def _pinned_all(self, scopes: Collection[str] | None) -> list[SharedReader]:
        """The snapshots of the shards of some scopes, in the order of the shards, all of one layout."""
        while True:
            layout, pinned = self._store.layout, list[SharedReader]()
            wanted = None if scopes is None else {layout.of(scope) for scope in scopes}
            try:
                for shard in (each for each in layout.names if wanted is None or each in wanted):
                    pinned += self._pinned(shard, self._source.bring)
                if self._store.layout == layout:
                    return pinned
            except (MemstateError, OSError):
                if self._store.layout == layout:
                    self._unpin(pinned)
                    raise
            self._unpin(pinned)

    def _pinned(self, shard: str, bring: Callable[[str], None]) -> list[SharedReader]:
        """The snapshot of a shard, which stays open until `_unpin`; opens it if it is not open."""
        found = self._shards.pin(shard)
        if found is not None:
            return found
        with self._opening[shard]:
            found = self._shards.pin(shard)
            if found is not None:
                return found
            bring(shard)
            try:
                reader = self._opened_current(shard)
            except BaseException:
                self._source.let_go(shard)
                raise
            found, surplus = self._shards.put(shard, reader)
        for each in surplus:
            self._drop(each)
        if reader is None:
            self._source.has_switched()
        return found

    def _opened_current(self, shard: str) -> SharedReader | None:
        number = current_number(self._store.home, shard)
        return None if number is None else SharedReader(load_snapshot(self._store.home, shard, number))

    def _unpin(self, readers: Sequence[SharedReader]) -> None:
        for reader in self._shards.unpin(readers):
            reader.close()
            self._let_go(shard_of(reader))

    def _drop(self, shard: str) -> None:
        """Closes a shard, or has its last request do so."""
        for reader in self._shards.drop(shard):
            reader.close()
        self._let_go(shard)

    def _let_go(self, shard: str) -> None:
        """Has a shard held no longer, unless it is used, or is being opened again."""
        if self._opening[shard].acquire(blocking=False):
            try:
                if not self._shards.is_used(shard):
                    self._source.let_go(shard)
            finally:
                self._opening[shard].release()

    def _follow(self, layout: Layout, shard: str, before: SharedReader | None) -> bool:
        if shard not in layout.names:
            self._drop(shard)
            return True
        number = current_number(self._store.home, shard)
        if (None if number is None else f"{shard}/{number}") == (None if before is None else before.name):
            return False
        fresh = None if number is None else SharedReader(load_snapshot(self._store.home, shard, number))
        swapped, closing = self._shards.replace(shard, before, fresh)
        for reader in closing:
            reader.close()
        if swapped and fresh is not None:
            self._counters.add(Count.SWAPS)
            _log.info("serving %s", fresh.name)
        return swapped

    def _generation(self, readers: tuple[SharedReader, ...]) -> Generation:
        model = served_model(readers) if readers else self._store.encoder.model
        with self._lock:
            encoder = self._encoders.get(model) or self._new_encoder(model)
            self._encoders[model] = encoder
        return Generation(readers, encoder, DamagedShards(self._store.layout))

    def _warm_once(self) -> None:
        """Loads the model with the first shards that are open, before a request waits for it."""
        readers = [] if self._is_warm else self._shards.pin_all()
        try:
            if readers:
                self._generation(tuple(readers)).warm([])
                self._is_warm = True
                if self._settle:
                    gc.freeze()
        finally:
            self._unpin(readers)
