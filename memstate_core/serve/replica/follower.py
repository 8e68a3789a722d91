"""The thread of a replica that asks its source for what is published now, and fetches it.

It never touches what is served: the watcher of snapshots sees CURRENT of the folder move, as in a home.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar

from memstate_core.model.errors import MemstateError
from memstate_core.model.scope import Layout
from memstate_core.model.text import iso
from memstate_core.serve.replica.mirror import Mirror
from memstate_core.serve.replica.published_keys import follow_keys
from memstate_core.storage.published import KEYS, STORE, StoreNote

T = TypeVar("T")
_STOP_SECONDS = 2.0
_log = logging.getLogger("memstate.serve")


@dataclass(frozen=True)
class Problem:
    """Why a shard could not be followed, and since when."""

    detail: str
    since: datetime


class Follower:
    """A thread that follows the source of a replica.

    Attributes:
        problems: what failed when each shard was asked for last, and for `store.json` and `keys.json`, which are about
            all of them; no entry where that worked.
        asked_at: when every shard was last found to be as published, by the machine's clock; None before.

    Args:
        mirror: the folder of the replica.
        seconds: how often the source is asked.
        in_use: the shards that are open, where shards are fetched on demand; None to follow all.
    """

    def __init__(self, mirror: Mirror, seconds: float, in_use: Callable[[], Collection[str]] | None = None) -> None:
        self._mirror, self._seconds, self._in_use = mirror, seconds, in_use
        self.problems: dict[str, Problem] = {}
        self.asked_at: datetime | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="memstate-follower", daemon=True)

    def start(self) -> None:
        """Starts asking."""
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread; one that waits for a slow source ends with the process, which harms nothing."""
        self._ended.set()
        self._thread.join(_STOP_SECONDS)

    def described(self) -> dict[str, Any]:
        """The key `replica` of `/readyz`."""
        return {
            "source": self._mirror.source,
            "asked_at": None if self.asked_at is None else iso(self.asked_at),
            "problems": [
                {"shard": shard, "detail": each.detail, "since": iso(each.since)}
                for shard, each in sorted(self.problems.copy().items())
            ],
        }

    def follow(self) -> None:
        """Asks once for every shard that is followed; serves those of another number once they are to be served.

        Where all shards are followed, that is when all of them are here; where shards are fetched on demand, at once.
        """
        said = self._attempt(STORE, self._look)
        self._attempt(KEYS, lambda: follow_keys(self._mirror.source, self._mirror.home.keys))
        there = self._mirror.layout if said is None else said.shard_layout
        for name in set(self.problems) - {STORE, KEYS, *there.names}:
            self.reached(name)
        for shard in self._followed(there):
            if self._attempt(shard, partial(self._mirror.follow, shard)):
                _log.info("fetched what is published of %s", shard)
        if said is not None:
            self._attempt(STORE, partial(self._settle, said))
        if not self.problems:
            if there != self._mirror.layout:
                self._switch(there)
            self.asked_at = datetime.now(UTC)

    def note(self, name: str, detail: str) -> None:
        """Notes what failed; each cause is logged once."""
        known = self.problems.get(name)
        if known is None or known.detail != detail:
            _log.error("cannot fetch what is published of %s: %s", name, detail)
        self.problems[name] = Problem(detail, datetime.now(UTC) if known is None else known.since)

    def reached(self, name: str) -> None:
        """Notes that nothing fails any more."""
        self.problems.pop(name, None)

    def _followed(self, there: Layout) -> list[str]:
        """The shards to ask for: all, or those in use and those that could not be fetched when they were asked for."""
        if self._in_use is None:
            return there.names
        wanted = {*self._in_use(), *self.problems}
        return [shard for shard in there.names if shard in wanted]

    def _look(self) -> StoreNote:
        said = self._mirror.look()
        if self._in_use is not None and said.shard_layout != self._mirror.layout:
            self._switch(said.shard_layout)
        return said

    def _settle(self, said: StoreNote) -> None:
        """Keeps what holds for all shards; lets go of shards that are no longer in use."""
        self._mirror.learn(said)
        if self._in_use is not None:
            self._mirror.release()

    def _switch(self, there: Layout) -> None:
        before = self._mirror.layout
        self._mirror.switch(there)
        _log.info("serving %d shards, %d before", there.count, before.count)

    def _attempt(self, name: str, act: Callable[[], T]) -> T | None:
        """Does something and notes whether it failed."""
        try:
            done = act()
        except Exception as error:  # noqa: BLE001 (a follower that dies would serve one snapshot forever)
            self.note(name, error.message if isinstance(error, MemstateError) else repr(error))
            return None
        self.reached(name)
        return done

    def _run(self) -> None:
        while True:
            self.follow()
            if self._ended.wait(self._seconds):
                return
