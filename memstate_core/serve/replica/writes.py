"""What a replica accepts for its store: each write is an object in the inbox at the URL before it is acknowledged.

Invariant: what failed to be stored is not acknowledged, and what may have been stored although no answer came is sent
again with the same bytes, which makes no second object.
"""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from memstate_core.ingest.accesses.record import AccessRecord, heading, written
from memstate_core.model.errors import InboxUnreachable
from memstate_core.model.text import iso
from memstate_core.serve.accesses import Access
from memstate_core.storage.purpose import INBOX as PURPOSE
from memstate_core.storage.remote_inbox import ACCESSES, INBOX, put_once
from memstate_core.storage.storage import Storage, storage

_FEEDBACK = "feedback"
_log = logging.getLogger("memstate.serve")


@dataclass(frozen=True)
class _Problem:
    detail: str
    since: datetime


class RemoteInbox:
    """A thread-safe writer of objects; in the service it takes the place of `InboxWriter`.

    Args:
        source: the URL that the replica serves from.
        limit: most accesses of a journal in memory.
    """

    def __init__(self, source: str, limit: int) -> None:
        self._source, self._limit = source, limit
        self._place: Storage | None = None
        self._problem: _Problem | None = None

    def append(self, lines: bytes, admission: AbstractContextManager[object] | None = None) -> str:
        """Stores the observations of a request as one object; arguments as for `InboxWriter.append`.

        Returns:
            The name of the object.

        Raises:
            InboxUnreachable: the storage does not answer, or refuses.
            Exception: what `admission` raised.
        """
        with admission or nullcontext():
            return self.put(INBOX, lines)

    def put(self, folder: str, content: bytes) -> str:
        """Stores a content; see `memstate_core.storage.remote_inbox.put_once`."""
        with self._observed():
            if self._place is None:
                self._place = storage(self._source, PURPOSE)
            return put_once(self._place, folder, content)

    def put_access(self, access: Access) -> None:
        """Stores an access as a segment of its own; one that is equal to the microsecond is the same.

        Raises:
            InboxUnreachable: the storage does not answer, or refuses.
        """
        self.put(ACCESSES, written(heading(_FEEDBACK)) + written(access.written))

    def journal(self) -> RemoteJournal:
        """A journal of accesses whose segments are objects."""
        return RemoteJournal(self, self._limit)

    def sweep(self) -> None:
        """There are no drafts."""

    def described(self, accepted: bool) -> dict[str, Any]:
        """The key `writes` of a replica in `/readyz`; the last write decides whether there is a problem."""
        problem = self._problem
        return {
            "accepted": accepted,
            "problem": None if problem is None else problem.detail,
            "since": None if problem is None else iso(problem.since),
        }

    @contextmanager
    def _observed(self) -> Iterator[None]:
        """Logs when writes begin to fail."""
        try:
            yield
        except InboxUnreachable as error:
            known = self._problem
            if known is None:
                _log.error("writes cannot be stored: %s", error.message)
            self._problem = _Problem(error.message, datetime.now(UTC) if known is None else known.since)
            raise
        self._problem = None


class RemoteJournal:
    """Records accesses as `AccessJournal` does; each flush makes a segment of its own."""

    def __init__(self, inbox: RemoteInbox, limit: int) -> None:
        self._inbox, self._limit = inbox, limit
        self._lines: list[bytes] = []
        self._segment = b""
        self._lock = threading.Lock()

    def add(self, access: AccessRecord) -> None:
        """Records an access; it is durable after the next `flush`.

        Raises:
            InboxUnreachable: no more fit in memory, and the storage does not answer; this one is dropped.
        """
        with self._lock:
            if len(self._lines) >= self._limit:
                self._flush()
            self._lines.append(written(access))

    def flush(self) -> None:
        """Stores all recorded accesses.

        Raises:
            InboxUnreachable: the storage does not answer; the accesses are kept for the next attempt.
        """
        with self._lock:
            self._flush()

    def close(self) -> None:
        """Stores the rest."""
        self.flush()

    def _flush(self) -> None:
        """Sends what an earlier attempt may have stored first, with the same bytes."""
        if self._segment:
            self._send()
        if self._lines:
            self._segment = written(heading(f"replica-{uuid.uuid4()}")) + b"".join(self._lines)
            self._lines.clear()
            self._send()

    def _send(self) -> None:
        self._inbox.put(ACCESSES, self._segment)
        self._segment = b""
