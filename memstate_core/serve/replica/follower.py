"""The thread of a replica that asks its source for what is published now, and fetches it.

It never touches what is served: the watcher of snapshots sees CURRENT of the folder move, as in a home.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from memstate_core.model.errors import MemstateError
from memstate_core.model.scope import Layout
from memstate_core.model.text import iso
from memstate_core.serve.replica.mirror import Mirror

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
        problems: what failed when each shard was asked for last; no entry where that worked.
        asked_at: when every shard was last found to be as published, by the machine's clock; None before.

    Args:
        mirror: the folder of the replica.
        seconds: how often the source is asked.
    """

    def __init__(self, mirror: Mirror, seconds: float) -> None:
        self._mirror, self._seconds = mirror, seconds
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
        """Asks once for every shard; serves those of another number once all of them are here."""
        here, there = self._mirror.layout, self._published()
        self.problems = {shard: each for shard, each in self.problems.items() if shard in there.names}
        for shard in there.names:
            try:
                if self._mirror.follow(shard):
                    _log.info("fetched what is published of %s", shard)
                self.problems.pop(shard, None)
            except Exception as error:  # noqa: BLE001 (a follower that dies would serve one snapshot forever)
                self._note(shard, error.message if isinstance(error, MemstateError) else repr(error))
        if not self.problems:
            if there != here:
                self._mirror.switch(there)
                _log.info("serving %d shards, %d before", there.count, here.count)
            self.asked_at = datetime.now(UTC)

    def _published(self) -> Layout:
        """The shards of the source; those that are here if it does not answer, which asking for them finds out."""
        try:
            return self._mirror.published()
        except MemstateError:
            return self._mirror.layout

    def _note(self, shard: str, detail: str) -> None:
        """Each cause is logged once."""
        known = self.problems.get(shard)
        if known is None or known.detail != detail:
            _log.error("cannot fetch what is published of %s: %s", shard, detail)
        self.problems[shard] = Problem(detail, datetime.now(UTC) if known is None else known.since)

    def _run(self) -> None:
        while True:
            self.follow()
            if self._ended.wait(self._seconds):
                return
