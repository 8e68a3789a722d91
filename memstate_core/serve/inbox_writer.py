"""Writes accepted observations as files into the inbox: complete, synced and named before they are acknowledged.

Group commit: one file holds the requests that arrived while the previous file was being written, so that they share
one sync. A kill at any moment leaves either a whole file, which the next run imports, or a hidden draft that was never
acknowledged. Processes write one after another, and each knows when another one wrote since.
"""

from __future__ import annotations

import fcntl
import os
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from memstate_core.ingest.api_files import PREFIX, file_name, make_key, signed
from memstate_core.state.files import PRIVATE_FILE, make_folder, replace_file

_STALE_SECONDS = 3600.0


class Inbox(Protocol):
    """Where a service writes accepted observations; thread-safe."""

    def append(self, lines: bytes, admission: AbstractContextManager[object] | None = None) -> str:
        """Writes whole lines, durably; see `InboxWriter.append`."""

    def sweep(self) -> None:
        """Removes what killed writers left."""


@dataclass(eq=False)
class _QueuedWrite:
    """Lines to be written, and the outcome."""

    lines: bytes
    admission: AbstractContextManager[object] = field(default_factory=nullcontext)
    name: str = ""
    error: Exception | None = None

    @property
    def is_done(self) -> bool:
        return bool(self.name or self.error)


class InboxWriter:
    """A thread-safe writer of complete files.

    Args:
        inbox: the folder to write into.
        key: the file of the key that signs the files; created if it is missing. The lock is beside it.
        on_others: called before a write if another writer wrote since the last one, and before the first.
    """

    def __init__(self, inbox: Path, key: Path, on_others: Callable[[], None] = lambda: None) -> None:
        self._inbox, self._key, self._on_others = inbox, key, on_others
        self._token = uuid.uuid4().bytes
        self._lock, self._writing = threading.Lock(), threading.Lock()
        self._queue: list[_QueuedWrite] = []
        self._last = 0

    def append(self, lines: bytes, admission: AbstractContextManager[object] | None = None) -> str:
        """Writes whole lines, each with its line feed; they survive a power cut when it returns.

        Args:
            lines: the lines.
            admission: entered before they are written, while no other process writes, and left afterwards. If it
                raises on entering, they are not written.

        Returns:
            The name of the file that holds them.

        Raises:
            OSError: writing failed; none of the lines is stored.
            Exception: what `admission` raised.
        """
        mine = _QueuedWrite(lines, admission or nullcontext())
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
            with self._turn(), ExitStack() as admissions:
                admitted = [each for each in group if _is_admitted(each, admissions)]
                name = self._write(b"".join(each.lines for each in admitted)) if admitted else ""
        except OSError as error:
            for each in group:
                each.error = each.error or error
            return
        for each in admitted:
            each.name = name

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Keeps other processes from writing; the lock file holds the token of who wrote last.

        It is flock(2) itself, which waits in the kernel, so that a write goes on at once; filelock polls.
        """
        path = self._key.with_suffix(".lock")
        make_folder(path.parent)
        with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, PRIVATE_FILE), "r+b", buffering=0) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if lock.read() != self._token:
                self._on_others()
                lock.seek(0)
                lock.write(self._token)
            yield

    def _write(self, rows: bytes) -> str:
        make_folder(self._inbox)
        name = self._next_name()
        replace_file(self._inbox / name, signed(rows, make_key(self._key)))
        return name

    def _next_name(self) -> str:
        """A name that sorts after its predecessors, since the first of two contents of an observation wins."""
        self._last = max(time.time_ns(), self._last + 1)
        return file_name(self._last, uuid.uuid4().hex[:8])


def _is_admitted(write: _QueuedWrite, admissions: ExitStack) -> bool:
    try:
        admissions.enter_context(write.admission)
    except Exception as error:  # noqa: BLE001 - raised again where the write is awaited
        write.error = error
    return write.error is None
