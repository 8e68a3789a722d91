"""Observations that arrive over HTTP, as files in the inbox: complete, synced and named before they are acknowledged.

One file holds what came while the file before was being written. Requests wait for each other's sync instead
of each making its own, and a kill at any moment leaves either a whole file, which the next run imports, or a
hidden one that nobody was told of.
"""

from __future__ import annotations

import os
import threading
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from memstate_core.state.snapshots import sync_path

PREFIX = "api-"
_STALE_SECONDS = 3600.0


@dataclass(eq=False)
class _QueuedWrite:
    """Lines that want to be written, and what became of them."""

    lines: bytes
    name: str = ""
    error: OSError | None = None

    @property
    def is_done(self) -> bool:
        return bool(self.name or self.error)


class InboxWriter:
    """A writer of complete files, for several threads."""

    def __init__(self, inbox: Path) -> None:
        self._inbox = inbox
        self._lock, self._writing = threading.Lock(), threading.Lock()
        self._waiting: list[_QueuedWrite] = []
        self._last = 0

    def append(self, lines: bytes) -> str:
        """Writes whole lines, each with its line feed; when it returns, they survive a power cut.

        Returns:
            The name of the file that holds them.

        Raises:
            OSError: the disk refuses; nothing of the lines is kept.
        """
        mine = _QueuedWrite(lines)
        with self._lock:
            self._waiting.append(mine)
        with self._writing:
            if not mine.is_done:
                with self._lock:
                    group, self._waiting = self._waiting, []
                self._commit(group)
        if mine.error is not None:
            raise mine.error
        return mine.name

    def sweep(self) -> None:
        """Removes unfinished files of writers that were killed long ago; none of them was acknowledged."""
        for path in self._inbox.glob(f".{PREFIX}*.part"):
            with suppress(FileNotFoundError):
                if time.time() - path.stat().st_mtime > _STALE_SECONDS:
                    path.unlink()

    def _commit(self, group: list[_QueuedWrite]) -> None:
        try:
            name = self._write(b"".join(each.lines for each in group))
        except OSError as error:
            for each in group:
                each.error = error
            return
        for each in group:
            each.name = name

    def _write(self, data: bytes) -> str:
        self._inbox.mkdir(parents=True, exist_ok=True)
        name = self._next_name()
        draft = self._inbox / f".{name}.part"
        try:
            with draft.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            draft.rename(self._inbox / name)
        except OSError:
            draft.unlink(missing_ok=True)
            raise
        sync_path(self._inbox)
        return name

    def _next_name(self) -> str:
        """A name that sorts after those before it, since of two contents of one observation the first one holds."""
        self._last = max(time.time_ns(), self._last + 1)
        return f"{PREFIX}{self._last:020d}-{uuid.uuid4().hex[:8]}.jsonl"
