"""Writer of the access journal, in which every reader of a store records the topics that were accessed."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Self

from memstate_core.ingest.accesses.journal_segments import COMPLETE, OPEN, append, created
from memstate_core.ingest.accesses.record import AccessRecord, heading, written
from memstate_core.model.text import iso
from memstate_core.state.files import make_folder, sync_path


class AccessJournal:
    """Records accesses; thread-safe; a context manager.

    Attributes:
        path: the segment being written, or after `close` the last one.
    """

    def __init__(self, folder: Path, name: str, *, limit: int = 1000) -> None:
        """Begins a segment.

        Args:
            folder: the store's `accesses`; created if missing.
            name: the segment's name without suffix, unique in the life of the store.
            limit: most accesses in memory before they are flushed.

        Raises:
            FileExistsError: there is a segment of this name.
            ValueError: the name is not a file name.
        """
        self._folder, self._limit = folder, limit
        self._lines: list[bytes] = []
        self._lock = threading.Lock()
        make_folder(folder)
        self._begin(name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def record(
        self,
        topic_id: str,
        at: datetime,
        source: str,
        *,
        fields: Sequence[str] | None = None,
        failed: bool = False,
        scope: str | None = None,
    ) -> None:
        """Records an access; it is durable after the next `flush`.

        Args:
            topic_id: the topic.
            at: time of the access, with a time zone.
            source: the reader, such as `cli`.
            fields: the fields that were accessed; None for the topic as a whole.
            failed: the topic was returned and did not help.
            scope: the topic's scope, TYPE:ID, if known.

        Raises:
            OSError: the write failed; earlier accesses stay in memory, and this one is dropped if that is full.
            ValueError: the journal is closed.
        """
        self.add(AccessRecord(topic_id=topic_id, at=iso(at), source=source, fields=fields, failed=failed, scope=scope))

    def add(self, access: AccessRecord) -> None:
        """Records an access, given as it is written; errors as for `record`."""
        with self._lock:
            self._flush_if_full()
            self._lines.append(written(access))
            self._flush_if_full()

    def flush(self) -> None:
        """Writes all recorded accesses to disk and syncs.

        Raises:
            OSError: the write failed; the accesses are kept for the next attempt, and none is written partially.
            ValueError: the journal is closed.
        """
        with self._lock:
            self._flush()

    def close(self) -> None:
        """Completes the segment, or removes it if it is empty. Closing again does nothing."""
        with self._lock:
            if self._handle is not None:
                self._end()

    def _begin(self, name: str) -> None:
        if not name or name.startswith(".") or Path(name).name != name:
            raise ValueError(f"{name!r} cannot name a segment: expected a file name without folder and suffix")
        self.path = self._folder / f"{name}{OPEN}"
        self._handle: int | None = created(self.path)
        self._heading = written(heading(name))
        self._size = append(self._handle, self._heading, 0)
        sync_path(self._folder)

    def _flush_if_full(self) -> None:
        if len(self._lines) >= self._limit:
            self._flush()

    def _flush(self) -> None:
        if self._handle is None:
            raise ValueError(f"the journal of {self.path} is closed, expected an open one")
        if self._lines:
            self._size = append(self._handle, b"".join(self._lines), self._size)
            self._lines.clear()

    def _end(self) -> None:
        self._flush()
        if self._size > len(self._heading):
            self.path = self.path.rename(self.path.with_suffix(COMPLETE))
        else:
            self.path.unlink()
        sync_path(self._folder)
        if self._handle is not None:
            os.close(self._handle)
        self._handle = None
