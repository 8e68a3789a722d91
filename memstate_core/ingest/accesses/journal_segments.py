"""Journal segments: the files of the access journal.

Each is written by one process and only appended to. Its suffix is `.open` while it is written, under a lock that the
kernel releases when the writer dies, and `.jsonl` when it is complete. A run collects complete segments, and open
ones that no process holds any more.

The lock is flock(2) on the open segment itself, not a file of the library that locks the store (filelock): it must
come into being with the segment, survive its renaming, be shared among several runs that look for abandoned segments,
and leave no file behind.
"""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path
from typing import BinaryIO

from memstate_core.state.files import PRIVATE_FILE

COMPLETE, OPEN = ".jsonl", ".open"


def waiting_segments(folder: Path) -> list[Path]:
    """The segments that the next run collects, sorted by name: complete ones, and open ones without a writer.

    Symbolic links are among them, whatever they point to, so that they are refused by name.
    """
    files = [path for path in folder.iterdir() if path.is_symlink() or path.is_file()] if folder.is_dir() else []
    found = [path for path in files if not path.name.startswith(".")]
    return sorted(path for path in found if path.suffix == COMPLETE or (path.suffix == OPEN and _is_abandoned(path)))


def _is_abandoned(path: Path) -> bool:
    """Whether no process holds a segment; an empty one may be about to be locked.

    One that this process may not open is taken for held, since it may be a writer's.
    """
    try:
        with opened(path) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return os.fstat(file.fileno()).st_size > 0
    except OSError as error:
        return error.errno == errno.ELOOP


def opened(path: Path) -> BinaryIO:
    """A segment, opened to be read.

    Raises:
        OSError: it cannot be opened, or is a symbolic link.
    """
    return os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb")


def created(path: Path) -> int:
    """Creates a segment to append to, locked until it is closed.

    Raises:
        FileExistsError: there is a segment of this name, open or complete.
    """
    complete = path.with_suffix(COMPLETE)
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, PRIVATE_FILE)
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
    """Appends data after the first `size` bytes and syncs, all or nothing; returns the new size.

    Raises:
        OSError: the write failed; a partial write was truncated.
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
