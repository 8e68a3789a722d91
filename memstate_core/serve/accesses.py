"""Records accesses of topics: buffered in memory, written to the journal by a background thread.

A query never waits for the disk. A kill loses the accesses recorded since the last flush; feedback is flushed before
it is answered.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from memstate_core.ingest.accesses.journal import AccessJournal
from memstate_core.ingest.accesses.record import AccessRecord
from memstate_core.model.errors import InboxUnreachable
from memstate_core.model.text import iso
from memstate_core.serve.options import Options
from memstate_core.serve.telemetry.counters import Count, Counters

SOURCE = "server"
FAILURES = (OSError, InboxUnreachable)
"""What a journal raises that cannot write now: one on the disk, or one of a replica at the URL of its store."""

_log = logging.getLogger("memstate.serve")


@dataclass(frozen=True)
class Access:
    """An access of one topic; see `AccessJournal.record`."""

    topic_id: str
    at: datetime
    scope: str
    fields: Sequence[str] | None = None
    failed: bool = False

    @property
    def written(self) -> AccessRecord:
        """What a journal writes of it."""
        return AccessRecord(
            topic_id=self.topic_id,
            at=iso(self.at),
            source=SOURCE,
            fields=self.fields,
            failed=self.failed,
            scope=self.scope,
        )


class ErasedTopics(Protocol):
    """Knows which topics are no longer served, because of an erasure."""

    def among(self, topic_ids: Collection[str], scopes: Collection[str]) -> frozenset[str]:
        """Those of some topics, which are of some scopes, that an erasure has removed since the last call."""


class Journal(Protocol):
    """Where accesses are written; see `AccessJournal`. Each method raises one of `FAILURES`."""

    def add(self, access: AccessRecord) -> None:
        """Records an access; it is durable after the next `flush`."""

    def flush(self) -> None:
        """Makes what was recorded durable."""

    def close(self) -> None:
        """Completes the segment."""


class AccessRecorder:
    """A thread-safe, buffered writer of accesses.

    Args:
        folder: the folder of the access journal.
        options: the options of the server.
        counters: counts accesses.
        erased: knows which topics an erasure removed.
        journal: begins a segment; one in the folder by default.
    """

    def __init__(
        self,
        folder: Path,
        options: Options,
        counters: Counters | None = None,
        erased: ErasedTopics | None = None,
        journal: Callable[[], Journal] | None = None,
    ) -> None:
        self._folder, self._options, self._counters = folder, options, counters or Counters()
        self._erased, self._begin = erased, journal or self._begin_segment
        self._buffer: deque[Access] = deque(maxlen=options.accesses_limit)
        self._buffering, self._writing = threading.Lock(), threading.Lock()
        self._unflushed = 0
        self._journal: Journal | None = None
        self._begun = 0.0
        self._ended = threading.Event()
        self._reported = ""
        self._thread = threading.Thread(target=self._run, name="memstate-accesses", daemon=True)

    def start(self) -> None:
        """Starts the writer thread."""
        self._thread.start()

    def record(self, accesses: Sequence[Access]) -> None:
        """Buffers accesses without blocking; the next flush writes them."""
        with self._buffering:
            dropped = max(0, len(self._buffer) + len(accesses) - self._options.accesses_limit)
            self._buffer.extend(accesses)
        self._counters.add(Count.ACCESSES_RECORDED, len(accesses))
        self._counters.add(Count.ACCESSES_DROPPED, dropped)

    def flush(self) -> None:
        """Writes everything recorded so far.

        Raises:
            OSError: writing failed; the accesses stay buffered for the next attempt, up to the limit. For a replica
                InboxUnreachable.
        """
        with self._writing:
            self._write()

    def close(self) -> None:
        """Writes the rest of the buffer and completes the segment for the next run; logs what cannot be written."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()
        with self._writing:
            try:
                self._write()
                self._complete()
            except FAILURES as error:
                self._give_up(str(error))

    def _run(self) -> None:
        while not self._ended.wait(self._options.flush_seconds):
            try:
                with self._writing:
                    self._write()
                    if time.monotonic() - self._begun >= self._options.rotate_seconds:
                        self._complete()
                self._reported = ""
            except FAILURES as error:
                self._report(str(error))

    def _report(self, problem: str) -> None:
        """Logs a problem once, not at every attempt."""
        if problem != self._reported:
            limit = self._options.accesses_limit
            _log.error("accesses cannot be written: %s; up to %d are kept in memory", problem, limit)
        self._reported = problem

    def _give_up(self, problem: str) -> None:
        """Drops what could not be written; what was flushed before stays in its segment, which the next run reads."""
        lost, self._unflushed, self._journal = len(self._buffer) + self._unflushed, 0, None
        self._buffer.clear()
        self._counters.add(Count.ACCESSES_DROPPED, lost)
        _log.error("accesses cannot be written: %s; %d are lost with the end of the server", problem, lost)

    def _write(self) -> None:
        """Moves the buffer into the journal. A segment exists only while it has accesses."""
        self._drop_erased()
        if self._journal is None and self._buffer:
            self._journal = self._begin()
            self._begun = time.monotonic()
        if self._journal is None:
            return
        for _ in range(len(self._buffer)):
            self._move(self._journal, self._buffer.popleft())
            self._unflushed += 1
        self._journal.flush()
        self._counters.add(Count.ACCESSES_FLUSHED, self._unflushed)
        self._unflushed = 0

    def _drop_erased(self) -> None:
        """Drops accesses of topics that were erased since they were recorded."""
        with self._buffering:
            held = list(self._buffer)
        gone = frozenset[str]()
        if self._erased is not None:
            gone = self._erased.among({each.topic_id for each in held}, {each.scope for each in held})
        if gone:
            with self._buffering:
                kept = [access for access in self._buffer if access.topic_id not in gone]
                self._counters.add(Count.ACCESSES_DROPPED, len(self._buffer) - len(kept))
                self._buffer.clear()
                self._buffer.extend(kept)

    def _move(self, journal: Journal, access: Access) -> None:
        try:
            journal.add(access.written)
        except FAILURES:
            self._buffer.appendleft(access)
            raise

    def _begin_segment(self) -> AccessJournal:
        return AccessJournal(self._folder, f"{SOURCE}-{uuid.uuid4()}", limit=self._options.accesses_limit)

    def _complete(self) -> None:
        if self._journal is not None:
            self._journal.close()
            self._journal = None
