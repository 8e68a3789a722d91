"""Uses of topics, from requests to the journal: noted in memory at once, brought to disk by a thread.

A query never waits for the disk. What a kill loses is what was noted since the last flush; feedback is
flushed before it is answered.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from memstate_core.ingest.accesses.journal import AccessJournal
from memstate_core.serve.options import Options
from memstate_core.serve.telemetry.counters import Count, Tally

SOURCE = "server"
_log = logging.getLogger("memstate.serve")


@dataclass(frozen=True)
class Use:
    """A use of one topic; see `AccessJournal.record`."""

    topic_id: str
    at: datetime
    scope: str
    fields: Sequence[str] | None = None
    failed: bool = False


class UseRecorder:
    """Notes uses, for several threads."""

    def __init__(self, folder: Path, options: Options, tally: Tally | None = None) -> None:
        self._folder, self._options, self._tally = folder, options, tally or Tally()
        self._noted: deque[Use] = deque(maxlen=options.uses_limit)
        self._noting, self._writing = threading.Lock(), threading.Lock()
        self._unflushed = 0
        self._journal: AccessJournal | None = None
        self._begun = 0.0
        self._ended = threading.Event()
        self._told = ""
        self._thread = threading.Thread(target=self._run, name="memstate-uses", daemon=True)

    def start(self) -> None:
        """Starts the thread that writes."""
        self._thread.start()

    def note(self, uses: Sequence[Use]) -> None:
        """Notes uses without waiting; they are on disk after the next flush."""
        with self._noting:
            dropped = max(0, len(self._noted) + len(uses) - self._options.uses_limit)
            self._noted.extend(uses)
        self._tally.add(Count.USES_NOTED, len(uses))
        self._tally.add(Count.USES_DROPPED, dropped)

    def flush(self) -> None:
        """Brings everything noted so far to disk.

        Raises:
            OSError: the disk refuses; the uses are kept for the next try, up to the limit.
        """
        with self._writing:
            self._write()

    def close(self) -> None:
        """Writes what is left, and completes the segment for the next run."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()
        with self._writing:
            self._write()
            self._complete()

    def _run(self) -> None:
        while not self._ended.wait(self._options.flush_seconds):
            try:
                with self._writing:
                    self._write()
                    if time.monotonic() - self._begun >= self._options.rotate_seconds:
                        self._complete()
                self._told = ""
            except OSError as error:
                self._tell(str(error))

    def _tell(self, problem: str) -> None:
        """Says once what is wrong, not at every try."""
        if problem != self._told:
            _log.error("uses cannot be written: %s; up to %d are kept in memory", problem, self._options.uses_limit)
        self._told = problem

    def _write(self) -> None:
        """Moves what was noted into the journal. A segment exists only while it has uses."""
        if self._journal is None and self._noted:
            self._journal = AccessJournal(self._folder, f"{SOURCE}-{uuid.uuid4()}", limit=self._options.uses_limit)
            self._begun = time.monotonic()
        if self._journal is None:
            return
        for _ in range(len(self._noted)):
            self._move(self._journal, self._noted.popleft())
            self._unflushed += 1
        self._journal.flush()
        self._tally.add(Count.USES_FLUSHED, self._unflushed)
        self._unflushed = 0

    def _move(self, journal: AccessJournal, use: Use) -> None:
        try:
            journal.record(use.topic_id, use.at, SOURCE, fields=use.fields, failed=use.failed, scope=use.scope)
        except OSError:
            self._noted.appendleft(use)
            raise

    def _complete(self) -> None:
        if self._journal is not None:
            self._journal.close()
            self._journal = None
