"""Which shards the processes of a machine have open, so that none removes the files of another.

Invariant: a shard is held by shared locks of the operating system, which lets go of those of a process that dies. They
are flock(2) itself, as the file locks of filelock are exclusive.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memstate_core.state.files import PRIVATE_FILE, make_folder


class HeldShards:
    """The shards that this process holds; thread-safe.

    Args:
        folder: where the lock files of all processes are.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._handles: dict[str, int] = {}
        self._lock = threading.Lock()

    def hold(self, shard: str) -> None:
        """Holds a shard; does nothing if this process holds it already.

        Raises:
            OSError: the lock file cannot be made.
        """
        with self._lock:
            if shard not in self._handles:
                handle = self._opened(shard)
                fcntl.flock(handle, fcntl.LOCK_SH)
                self._handles[shard] = handle

    def let_go(self, shard: str) -> None:
        """Holds a shard no longer."""
        with self._lock:
            handle = self._handles.pop(shard, None)
            if handle is not None:
                os.close(handle)

    @contextmanager
    def alone(self, shard: str) -> Iterator[bool]:
        """Keeps everybody from holding a shard; yields false if a process holds it already.

        Raises:
            OSError: the lock file cannot be made.
        """
        handle = self._opened(shard)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True
        finally:
            os.close(handle)

    def _opened(self, shard: str) -> int:
        make_folder(self._folder)
        return os.open(self._folder / f"{shard}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE_FILE)
