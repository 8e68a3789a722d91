"""Nights of several shards at once: each holds the lock of its shard, and that of the store for parts of its work.

A night holds the store's lock while it takes in input and begins, while it publishes, and while it writes its page.
What lies between, which is nearly all of its work, reads what it pinned and writes into its own scratch folder. A
command that needs the whole store, such as a correction or an erasure, holds the store's lock from its start to its
end, and does not begin while a shard is locked (`writers.holding`). Of a store at a URL, the leases of the store and of
the shard stand for the two locks.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import TYPE_CHECKING

from memstate_core.model.errors import StoreLocked
from memstate_core.night.checkout.note import store_url
from memstate_core.state.kept_open import kept_open
from memstate_core.state.lock import exclusive
from memstate_core.state.process.memory import memory_budget
from memstate_pipeline.writers import PROBED_SECONDS, complete_interrupted, holding, holding_briefly, require_settled

if TYPE_CHECKING:
    from memstate_core.night.checkout.session import NightSession
    from memstate_core.run.store import Store

Say = Callable[[str], object]
"""Takes what somebody waits for."""

PATIENCE_SECONDS = 3600.0
"""How long nights wait for each other, and jobs of Dagster for nights: longer than the import of a night."""
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.05, 2.0
_SAY_SECONDS = 10.0
"""How often somebody who waits says so: more often than a silent run is taken for a dead one."""


class ShardNight:
    """The night of one shard, beside those of others.

    Args:
        store: the store.
        shard: which shard.
        holder: who runs it, for messages.
        say: takes what it waits for.
    """

    def __init__(self, store: Store, shard: str, holder: str, say: Say) -> None:
        self._store, self._shard, self._holder, self._say = store, shard, f"{holder}, the night of {shard}", say
        self._session: NightSession | None = None
        self._has_begun = self._holds_store = False

    @contextmanager
    def begun(self) -> Iterator[None]:
        """Holds the shard for the length of the block.

        Raises:
            StoreLocked: the shard has its night already, or a command needs the whole store.
            MemstateError: as for `writers.holding`.
        """
        complete_interrupted(self._store, self._holder)
        mark = self._store.home.begun_night(self._shard)
        lock = exclusive(self._store.home.shard_lock(self._shard), self._holder, PROBED_SECONDS, brief=True)
        with lock, memory_budget(self._store.settings.store.memory_mib), kept_open():
            if store_url(self._store):
                from memstate_core.night.checkout.session import NightSession

                self._session = NightSession(self._store, self._shard, self._holder)
            try:
                mark.unlink(missing_ok=True)  # that of a night that died
                with self.holding_store():
                    mark.touch()
                    self._has_begun = True
                yield
            finally:
                mark.unlink(missing_ok=True)
                if self._session is not None:
                    self._session.end()

    @contextmanager
    def holding_store(self) -> Iterator[None]:
        """Holds the store for the length of the block; waits while others hold it briefly. It may be nested.

        Raises:
            StoreLocked: they held it for too long.
            LeaseLost: another machine took the shard, or the store at the URL, which was not changed.
            MemstateError: as for `writers.holding`.
        """
        if self._holds_store:
            yield
            return
        try:
            with waiting(self._held_store, lambda error: self._has_begun or error.brief, self._say):
                self._holds_store = True
                yield
        finally:
            self._holds_store = False

    @contextmanager
    def _held_store(self) -> Iterator[None]:
        with ExitStack() as held:
            held.enter_context(exclusive(self._store.home.lock, self._holder, PROBED_SECONDS, brief=True))
            if self._session is not None:
                held.enter_context(self._session.holding_lease())
            require_settled(self._store)
            yield


@contextmanager
def holding_after_nights(store: Store, holder: str, say: Say) -> Iterator[None]:
    """As `writers.holding`, for a job that Dagster begins: waits for nights that are in progress.

    Raises:
        MemstateError: as for `writers.holding`.
    """
    with waiting(lambda: holding(store, holder, brief=True), lambda error: error.brief, say):
        yield


@contextmanager
def holding_beside_nights(store: Store, holder: str, say: Say) -> Iterator[None]:
    """As `writers.holding_briefly`, for a job that Dagster begins: waits while others hold it briefly.

    Raises:
        MemstateError: as for `writers.holding`.
    """
    with waiting(lambda: holding_briefly(store, holder), lambda error: error.brief, say):
        yield


@contextmanager
def waiting(
    take: Callable[[], AbstractContextManager[None]], waits_for: Callable[[StoreLocked], bool], say: Say
) -> Iterator[None]:
    """Holds something for the length of the block, which others hold for a time.

    Args:
        take: makes what is held.
        waits_for: whether to wait for the holder that an error names.
        say: takes what it waits for, every ten seconds.

    Raises:
        StoreLocked: the holder is not waited for, or held it for an hour.
    """
    began = said = time.monotonic()
    pause = _FIRST_PAUSE_SECONDS
    while True:
        with ExitStack() as held:
            try:
                held.enter_context(take())
            except StoreLocked as error:
                now = time.monotonic()
                if now - began > PATIENCE_SECONDS or not waits_for(error):
                    raise
                if now - said >= _SAY_SECONDS:
                    said = now
                    say(f"waits for {error.facts['holder']}")
            else:
                yield
                return
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
