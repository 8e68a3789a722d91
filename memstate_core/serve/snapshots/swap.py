"""The generation in service: opened beside the one before, warmed, swapped in; the old one closed when it is idle.

Invariant: a snapshot is closed only when no generation that serves or is held by a request names it.
"""

from __future__ import annotations

import gc
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from cachetools import LRUCache

from memstate_core.model.errors import StoreNotFound
from memstate_core.run.store import Store
from memstate_core.serve.snapshots.generation import WARMED_SCOPES, Generation, SharedReader
from memstate_core.serve.snapshots.question_encoder import QuestionEncoder
from memstate_core.serve.telemetry.counters import Count, Tally
from memstate_core.serve.telemetry.tracing import span
from memstate_core.state.snapshots import current_number, load_snapshot

T = TypeVar("T")
_log = logging.getLogger("memstate.serve")


class Serving:
    """Follows CURRENT of every shard; for several threads."""

    def __init__(self, store: Store, tally: Tally | None = None, *, settle: bool = False) -> None:
        self._store, self._tally, self._settle = store, tally or Tally(), settle
        self._lock = threading.Lock()
        self._refreshing = threading.Lock()
        self._current: Generation | None = None
        self._open: list[Generation] = []
        self._asked: LRUCache[str, None] = LRUCache(WARMED_SCOPES)
        self._encoder: QuestionEncoder | None = None

    @property
    def current(self) -> Generation | None:
        """What is served now; None before the first snapshot."""
        return self._current

    @property
    def named(self) -> str:
        """The snapshots that CURRENT names, which may be others than those that are served."""
        numbers = ((shard, current_number(self._store.home, shard)) for shard in self._store.shards)
        return ",".join(f"{shard}/{number}" for shard, number in numbers if number is not None)

    @property
    def open_snapshots(self) -> int:
        """How many snapshots are open: those that are served, and older ones that requests still hold."""
        with self._lock:
            return len({reader.name for generation in self._open for reader in generation.readers})

    def read(self, work: Callable[[Generation], T]) -> T:
        """Does work on one generation, which stays open meanwhile.

        Files of a snapshot that is not served any more may be removed under a reader (`keep_snapshots`); the
        work is then done again, from the beginning, on the snapshot that is served.

        Raises:
            StoreNotFound: nothing was published yet.
        """
        with self._using() as generation:
            try:
                return work(generation)
            except (OSError, RuntimeError):
                self.refresh()
                if self._current is generation:
                    raise
        with self._using() as generation:
            return work(generation)

    def note_scopes(self, scopes: Sequence[str]) -> None:
        """Remembers which scopes are asked, to have them ready in the next generation."""
        with self._lock:
            for scope in scopes[:WARMED_SCOPES]:
                self._asked[scope] = None

    def refresh(self) -> bool:
        """Opens what CURRENT names and swaps it in; says whether something changed.

        Raises:
            SnapshotDamaged: a snapshot cannot be opened; what was served goes on being served.
            ModelUnavailable: its model cannot be loaded.
        """
        with self._refreshing:
            named = [(shard, current_number(self._store.home, shard)) for shard in self._store.shards]
            names = [f"{shard}/{number}" for shard, number in named if number is not None]
            if not names or (self._current is not None and self._current.names == names):
                return False
            with span("memstate.snapshot.swap", root=True, snapshot=",".join(names)):
                fresh = self._opened([(shard, number) for shard, number in named if number is not None])
                if self._settle and self._current is None:
                    gc.freeze()
                self._swap(fresh)
        self._tally.add(Count.SWAPS)
        _log.info("serving %s", fresh.snapshot)
        return True

    def close(self) -> None:
        """Stops serving; snapshots that requests still hold are closed by the last of them."""
        self._swap(None)

    def _opened(self, wanted: list[tuple[str, int]]) -> Generation:
        """A warmed generation; snapshots that are open already are shared."""
        before = {} if self._current is None else {reader.name: reader for reader in self._current.readers}
        readers = tuple(
            before.get(f"{shard}/{number}") or SharedReader(load_snapshot(self._store.home, shard, number))
            for shard, number in wanted
        )
        model = max((reader.snapshot.manifest for reader in readers), key=lambda each: each.now).embedding_model
        generation = Generation(readers, self._encoder_of(model))
        with self._lock:
            asked = list(self._asked)
        try:
            generation.warm(asked)
        except BaseException:
            generation.close(before.values())
            raise
        return generation

    def _encoder_of(self, model: str) -> QuestionEncoder:
        if self._encoder is None or self._encoder.model != model:
            self._encoder = QuestionEncoder(model, self._store.settings.embedding.batch_size)
        return self._encoder

    def _swap(self, fresh: Generation | None) -> None:
        with self._lock:
            self._current = fresh
            self._open += [] if fresh is None else [fresh]
            idle, needed = self._swept()
        _close(idle, needed)

    @contextmanager
    def _using(self) -> Iterator[Generation]:
        with self._lock:
            generation = self._current
            if generation is None:
                raise StoreNotFound(str(self._store.home.root))
            generation.users += 1
        try:
            yield generation
        finally:
            with self._lock:
                generation.users -= 1
                idle, needed = self._swept()
            _close(idle, needed)

    def _swept(self) -> tuple[list[Generation], list[SharedReader]]:
        """Takes out the generations that nobody needs any more; also the readers that somebody does."""
        idle = [each for each in self._open if each.users == 0 and each is not self._current]
        self._open = [each for each in self._open if each not in idle]
        return idle, [reader for each in self._open for reader in each.readers]


def _close(idle: list[Generation], needed: list[SharedReader]) -> None:
    for generation in idle:
        generation.close(needed)
