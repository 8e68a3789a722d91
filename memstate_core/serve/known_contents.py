"""The contents of observations that were accepted lately, so that another content of the same id is refused at once.

Known are the observations that this process accepted, the newest of them, and those that waited in the inbox when it
accepted its first; one of several workers looks into the inbox each time. Of others, and of two that workers accept at
the same moment, a run finds the conflict, and records it in the quarantine.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import polars as pl

from memstate_core.ingest.reasons import Reason, shortened
from memstate_core.serve.observations import Accepted, ObservationsConflict

KNOWN = 200_000
"""How many observations are remembered; one takes about 150 bytes."""


class KnownContents:
    """A thread-safe memory of accepted contents.

    Args:
        waiting: the observations in the inbox (columns scope, observation_id, content_sha256); asked once.
        again: ask each time, since other processes accept observations, too.
    """

    def __init__(self, waiting: Callable[[], pl.DataFrame], *, again: bool = False) -> None:
        self._waiting, self._again = waiting, again
        self._is_read = False
        self._lock = threading.Lock()
        self._known: dict[bytes, str] = {}

    @contextmanager
    def accepting(self, accepted: Accepted) -> Iterator[None]:
        """Remembers observations while they are written, and afterwards unless that fails.

        Raises:
            ObservationsConflict: the ids of some are known with other contents.
        """
        with self._lock:
            self._read_waiting()
            self._refuse_conflicts(accepted)
            fresh = {key: content for *name, content in accepted.contents if (key := _key(*name)) not in self._known}
            self._remember(fresh)
        try:
            yield
        except BaseException:
            with self._lock:
                for key in fresh:
                    self._known.pop(key, None)
            raise

    def _read_waiting(self) -> None:
        if self._again or not self._is_read:
            rows = self._waiting().select("scope", "observation_id", "content_sha256")
            self._remember({_key(scope, name): content for scope, name, content in rows.reverse().iter_rows()})
            self._is_read = True

    def _remember(self, contents: dict[bytes, str]) -> None:
        self._known |= contents
        for key in list(self._known)[: max(0, len(self._known) - KNOWN)]:
            del self._known[key]

    def _refuse_conflicts(self, accepted: Accepted) -> None:
        refusals = [
            (place, Reason.CONFLICTING_OBSERVATION.value, _detail(scope, name))
            for place, (scope, name, content) in enumerate(accepted.contents)
            if self._known.get(_key(scope, name), content) != content
        ]
        if refusals:
            raise ObservationsConflict(refusals)


def _key(scope: str, observation_id: str) -> bytes:
    return hashlib.blake2b(f"{scope}\0{observation_id}".encode(), digest_size=16).digest()


def _detail(scope: str, observation_id: str) -> str:
    found = f"observation_id {observation_id!r} was accepted with other content in scope {scope!r}"
    return shortened(f"{found}, expected the same content, or an id that is new in this scope")
