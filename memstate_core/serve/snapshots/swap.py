"""The served generation: opened beside its predecessor, warmed, swapped in; the old one is closed when idle.

Invariant: a snapshot is closed only when no serving generation and no request uses it. A request that begins when an
erasure has ended is answered from what was published after it, or not at all.
"""

from __future__ import annotations

import gc
import logging
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TypeVar

from cachetools import LRUCache

from memstate_core.model.errors import SnapshotAbsent, SnapshotDamaged, StoreNotFound
from memstate_core.retrieve.reader import served_model
from memstate_core.run.store import Store
from memstate_core.serve.snapshots.generation import WARMED_SCOPES, Generation, SharedReader
from memstate_core.serve.snapshots.question_encoder import QuestionEncoder
from memstate_core.serve.snapshots.shard_states import ShardState, shard_states
from memstate_core.serve.telemetry.counters import Count, Counters
from memstate_core.serve.telemetry.tracing import span
from memstate_core.state.absent import require_here
from memstate_core.state.current import current_number
from memstate_core.state.damaged_shards import DamagedShards
from memstate_core.state.erasure_mark import erasure_mark
from memstate_core.state.snapshots import load_snapshot

T = TypeVar("T")
_log = logging.getLogger("memstate.serve")


class Serving:
    """Serves what CURRENT of every shard names; thread-safe."""

    def __init__(self, store: Store, counters: Counters | None = None, *, settle: bool = False) -> None:
        self._store, self._counters, self._settle = store, counters or Counters(), settle
        self._lock = threading.Lock()
        self._refreshing = threading.Lock()
        self._current: Generation | None = None
        self._open: list[Generation] = []
        self._asked: LRUCache[str, None] = LRUCache(WARMED_SCOPES)
        self._encoder: QuestionEncoder | None = None
        self._seen = erasure_mark(store.home)

    @property
    def current(self) -> Generation | None:
        """The served generation; None before the first snapshot."""
        return self._current

    @property
    def is_ready(self) -> bool:
        """Whether questions are answered."""
        return self._current is not None

    @property
    def named(self) -> str:
        """The snapshots that CURRENT names, which may differ from those served."""
        numbers = ((shard, current_number(self._store.home, shard)) for shard in self._store.shards)
        return ",".join(f"{shard}/{number}" for shard, number in numbers if number is not None)

    @property
    def open_snapshots(self) -> int:
        """The number of open snapshots: those served, and older ones that requests still use."""
        with self._lock:
            return len({reader.name for generation in self._open for reader in generation.readers})

    def in_use(self) -> list[str]:
        """The shards that are open."""
        return [] if self._current is None else [reader.snapshot.manifest.shard for reader in self._current.readers]

    def states(self) -> dict[str, ShardState]:
        """The state of each shard."""
        generation = self._current
        if generation is None:
            return {}
        return shard_states(self._store.shards, generation.readers, generation.damaged.errors)

    def read(self, work: Callable[[Generation], T], scopes: Collection[str] | None = None) -> T:  # noqa: ARG002
        """Runs `work` on one generation, which stays open meanwhile.

        Files of a superseded snapshot may be removed under a reader (`keep_snapshots`); the work is then repeated on
        the served snapshot.

        Args:
            work: what to do.
            scopes: the scopes that it is about, None for all; every shard is open here.

        Raises:
            StoreNotFound: nothing is published yet.
            SnapshotAbsent: no shard that has a snapshot is on this machine.
        """
        with self._using() as generation:
            try:
                return work(generation)
            except (OSError, RuntimeError):
                with suppress(SnapshotDamaged):
                    self.refresh()
                if self._current is generation:
                    raise
        with self._using() as generation:
            return work(generation)

    def record_scopes(self, scopes: Sequence[str]) -> None:
        """Records which scopes are searched, to warm them in the next generation."""
        with self._lock:
            for scope in scopes[:WARMED_SCOPES]:
                self._asked[scope] = None

    def refresh(self) -> bool:
        """Opens what CURRENT names and swaps it in; returns whether anything changed.

        Raises:
            SnapshotDamaged: a snapshot cannot be opened; the previous one of its shard stays in service, if there is
                one, and those of the other shards are swapped in.
            ModelUnavailable: its model cannot be loaded.
        """
        with self._refreshing:
            mark = erasure_mark(self._store.home)
            with self._released_on_failure(mark):
                readers, damaged = self._readers(fall_back=mark == self._seen)
                swapped = bool(readers) and self._differs(readers, damaged)
                if swapped:
                    self._swap_in(readers, damaged)
                elif not readers:
                    self._swap(None)
            self._seen = mark
        if damaged.errors:
            raise next(iter(damaged.errors.values()))
        return swapped

    def close(self) -> None:
        """Stops serving; snapshots in use are closed by their last request."""
        self._swap(None)

    @contextmanager
    def _released_on_failure(self, mark: int) -> Iterator[None]:
        """Stops serving if the block fails after an erasure: what is open may hold what was erased."""
        try:
            yield
        except BaseException:
            if mark != self._seen:
                self._swap(None)
            raise

    def _follow_erasures(self) -> None:
        """Opens what was published after an erasure, if there was one since the last time."""
        if erasure_mark(self._store.home) != self._seen:
            with suppress(SnapshotDamaged):
                self.refresh()

    def _readers(self, *, fall_back: bool) -> tuple[tuple[SharedReader, ...], DamagedShards]:
        """What CURRENT of every shard names, and all damaged shards; there the readers before it, to fall back on.

        Of a shard that is no longer on this machine they have lost their files.
        """
        served = () if self._current is None else self._current.readers
        before = {reader.snapshot.manifest.shard: reader for reader in served}
        layout = self._store.layout
        found, damaged = [], DamagedShards(layout)
        for shard in layout.names:
            try:
                reader = self._reader(shard, before.get(shard))
            except SnapshotDamaged as error:
                is_gone = not fall_back or isinstance(error, SnapshotAbsent)
                damaged, reader = damaged.plus(error), None if is_gone else before.get(shard)
            found += [reader] if reader else []
        return tuple(found), damaged

    def _reader(self, shard: str, before: SharedReader | None) -> SharedReader | None:
        number = current_number(self._store.home, shard)
        if number is None:
            return None
        if before is not None and before.name == f"{shard}/{number}":
            if self._store.settings.store.checkout_mib:
                require_here(self._store.home, [shard])
            return before
        return SharedReader(load_snapshot(self._store.home, shard, number))

    def _differs(self, readers: tuple[SharedReader, ...], damaged: DamagedShards) -> bool:
        names, current = [reader.name for reader in readers], self._current
        return (
            current is None
            or current.names != names
            or current.damaged.note(None) != unserved(readers, damaged).note(None)
        )

    def _swap_in(self, readers: tuple[SharedReader, ...], damaged: DamagedShards) -> None:
        with span("memstate.snapshot.swap", root=True, snapshot=",".join(reader.name for reader in readers)):
            fresh = self._opened(readers, unserved(readers, damaged))
            if self._settle and self._current is None:
                gc.freeze()
            self._swap(fresh)
        self._counters.add(Count.SWAPS)
        _log.info("serving %s", fresh.snapshot)

    def _opened(self, readers: tuple[SharedReader, ...], damaged: DamagedShards) -> Generation:
        """Opens a warmed generation; it shares snapshots that are already open."""
        before = [] if self._current is None else list(self._current.readers)
        generation = Generation(readers, self._encoder_of(served_model(readers)), damaged)
        with self._lock:
            asked = list(self._asked)
        try:
            generation.warm(asked)
        except BaseException:
            generation.close(before)
            raise
        return generation

    def _encoder_of(self, model: str) -> QuestionEncoder:
        if self._encoder is None or self._encoder.model != model:
            self._encoder = self._new_encoder(model)
        return self._encoder

    def _new_encoder(self, model: str) -> QuestionEncoder:
        embedding = self._store.settings.embedding
        base = self._store.models_base
        return QuestionEncoder(model, embedding.batch_size, embedding.runtime, access=embedding, base=base)

    def _swap(self, fresh: Generation | None) -> None:
        with self._lock:
            self._current = fresh
            self._open += [] if fresh is None else [fresh]
            idle, shared = self._take_idle()
        _close(idle, shared)

    @contextmanager
    def _using(self) -> Iterator[Generation]:
        self._follow_erasures()
        with self._lock:
            generation = self._current
            if generation is None:
                require_here(self._store.home, self._store.shards)
                raise StoreNotFound(str(self._store.home.root))
            generation.users += 1
        try:
            yield generation
        finally:
            with self._lock:
                generation.users -= 1
                idle, shared = self._take_idle()
            _close(idle, shared)

    def _take_idle(self) -> tuple[list[Generation], list[SharedReader]]:
        """Removes and returns the unused generations; also returns the readers still in use."""
        idle = [each for each in self._open if each.users == 0 and each is not self._current]
        self._open = [each for each in self._open if each not in idle]
        return idle, [reader for each in self._open for reader in each.readers]


def unserved(readers: Sequence[SharedReader], damaged: DamagedShards) -> DamagedShards:
    """The damaged shards of which no older snapshot is served either."""
    served = {reader.snapshot.manifest.shard for reader in readers}
    return DamagedShards(
        damaged.layout, {shard: error for shard, error in damaged.errors.items() if shard not in served}
    )


def _close(idle: list[Generation], shared: list[SharedReader]) -> None:
    for generation in idle:
        generation.close(shared)
