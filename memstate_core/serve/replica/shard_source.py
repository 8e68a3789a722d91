"""Where a replica that opens shards on demand gets them: from its folder, and from the source what is not there.

Invariant: a shard that is open is held in the folder, so that no process of the machine removes its files.
"""

from __future__ import annotations

import threading

from memstate_core.model.errors import MemstateError
from memstate_core.serve.replica.follower import Follower
from memstate_core.serve.replica.mirror import Mirror


class ShardSource:
    """Fetches single shards; thread-safe.

    A shard that could not be fetched is asked for again by the follower alone, so that requests for it fail at once and
    leave the threads of the server to those for other shards.

    Args:
        mirror: the folder of the replica.
        follower: what asks the source regularly.
    """

    def __init__(self, mirror: Mirror, follower: Follower) -> None:
        self._mirror, self._follower = mirror, follower
        self._failed: dict[str, Exception] = {}
        self._lock = threading.Lock()

    def bring(self, shard: str) -> None:
        """Fetches what is published of a shard; where that fails, what is here of it is served.

        Raises:
            MemstateError: it failed, and nothing is here; as for `Mirror.follow`.
            OSError: a file cannot be written.
        """
        known = self._known_failure(shard)
        if known is not None:
            raise known.with_traceback(None)
        self._mirror.held.hold(shard)
        try:
            self._mirror.follow(shard)
        except (MemstateError, OSError) as error:
            self._follower.note(shard, error.message if isinstance(error, MemstateError) else str(error))
            if not self._mirror.has(shard):
                self._failed[shard] = error
                self._mirror.held.let_go(shard)
                raise
        else:
            self._follower.reached(shard)

    def hold(self, shard: str) -> None:
        """Holds what is here of a shard; raises OSError."""
        self._mirror.held.hold(shard)

    def let_go(self, shard: str) -> None:
        """Says that a shard is no longer open here; the follower removes its files if no process has it open."""
        self._mirror.held.let_go(shard)

    def has_switched(self) -> bool:
        """Whether the store has other shards than before, which are served from now on."""
        try:
            there = self._mirror.published()
        except MemstateError:
            return False
        with self._lock:
            if there == self._mirror.layout:
                return False
            self._mirror.switch(there)
            return True

    def _known_failure(self, shard: str) -> Exception | None:
        if shard not in self._follower.problems:
            self._failed.pop(shard, None)
        return self._failed.get(shard)
