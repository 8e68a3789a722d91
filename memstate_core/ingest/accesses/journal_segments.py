"""Segments of the journal of uses, as files.

Each is written by one process and only ever appended to. It bears `.open` while it is written, and its
writer holds a lock on it, which the kernel gives back when the writer dies; `.jsonl` says that it is
complete. A run collects what is complete, and what is open and held by nobody any more.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

COMPLETE, OPEN = ".jsonl", ".open"


def waiting_segments(folder: Path) -> list[Path]:
    """What the next run collects, by name: complete segments, and open ones whose writer has ended."""
    files = [path for path in folder.iterdir() if path.is_file()] if folder.is_dir() else []
    found = [path for path in files if not path.name.startswith(".")]
    return sorted(path for path in found if path.suffix == COMPLETE or (path.suffix == OPEN and _is_abandoned(path)))


def _is_abandoned(path: Path) -> bool:
    """Whether nobody holds a segment; an empty one may be about to be locked."""
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return os.fstat(file.fileno()).st_size > 0
    except (BlockingIOError, FileNotFoundError):
        return False


def claimed(path: Path) -> int:
    """A new segment to append to, locked until it is closed.

    Raises:
        FileExistsError: a segment of this name lies there, open or complete.
    """
    complete = path.with_suffix(COMPLETE)
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o644)
    except FileExistsError:
        raise _taken(path) from None
    fcntl.flock(handle, fcntl.LOCK_EX)
    if complete.exists():
        path.unlink()
        os.close(handle)
        raise _taken(complete)
    return handle


def _taken(path: Path) -> FileExistsError:
    return FileExistsError(f"{path} exists, expected a name that no segment ever had")


def append(handle: int, data: bytes, size: int) -> int:
    """Writes all or nothing after the first `size` bytes, and syncs; says how many there are now.

    Raises:
        OSError: the disk refuses; what was written of the data is cut off again.
    """
    rest = memoryview(data)
    try:
        while rest:
            rest = rest[os.write(handle, rest) :]
        os.fsync(handle)
    except OSError:
        os.ftruncate(handle, size)
        raise
    return size + len(data)
