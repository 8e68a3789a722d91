"""Writes accepted observations as files into the inbox: complete, synced and named before they are acknowledged.

Group commit: one file holds the requests that arrived while the previous file was being written, so that they share
one sync. A kill at any moment leaves either a whole file, which the next run imports, or a hidden draft that was never
acknowledged.
"""

from __future__ import annotations

import threading
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from memstate_core.ingest.api_files import PREFIX, file_name, make_key, signed
from memstate_core.state.files import make_folder, replace_file

_STALE_SECONDS = 3600.0


@dataclass(eq=False)
class _QueuedWrite:
    """Lines to be written, and the outcome."""

    lines: bytes
    name: str = ""
    error: OSError | None = None

    @property
    def is_done(self) -> bool:
        return bool(self.name or self.error)


class InboxWriter:
    """A thread-safe writer of complete files.

    Args:
        inbox: the folder to write into.
        key: the file of the key that signs the files; created if it is missing.
    """

    def __init__(self, inbox: Path, key: Path) -> None:
        self._inbox, self._key = inbox, key
        self._lock, self._writing = threading.Lock(), threading.Lock()
        self._queue: list[_QueuedWrite] = []
        self._last = 0

    def append(self, lines: bytes) -> str:
        """Writes whole lines, each with its line feed; they survive a power cut when it returns.

        Returns:
            The name of the file that holds them.

        Raises:
            OSError: writing failed; none of the lines is stored.
        """
        mine = _QueuedWrite(lines)
        with self._lock:
            self._queue.append(mine)
        with self._writing:
            if not mine.is_done:
                with self._lock:
                    group, self._queue = self._queue, []
                self._commit(group)
        if mine.error is not None:
            raise mine.error
        return mine.name

    def sweep(self) -> None:
        """Removes old drafts of killed writers; none of them was acknowledged."""
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

    def _write(self, rows: bytes) -> str:
        make_folder(self._inbox)
        name = self._next_name()
        replace_file(self._inbox / name, signed(rows, make_key(self._key)))
        return name

    def _next_name(self) -> str:
        """A name that sorts after its predecessors, since the first of two contents of an observation wins."""
        self._last = max(time.time_ns(), self._last + 1)
        return file_name(self._last, uuid.uuid4().hex[:8])
