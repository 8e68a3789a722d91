"""Digests of files that do not change while the shards of a store are worked on, computed once for all of them.

Each shard's night and verification compares the whole ledger with its chain, so without this the bytes that are read
grow with the square of the number of shards.

Invariant: a digest is taken over only for a file whose inode, size and times are those that it had when it was read.
Programs cannot set the time of change (ctime), so what was written since is read again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from memstate_core.state.files import file_digest

_SETTLED_NS = 2_000_000_000
"""A file that changed so shortly before it was read may have changed again within one tick of the file system."""

_Mark = tuple[int, int, int, int, int]
_READ: ContextVar[dict[Path, tuple[_Mark, str]] | None] = ContextVar("read", default=None)


@contextmanager
def files_read_once() -> Iterator[None]:
    """Within the block `digest_once` reads a file again only if it has changed; outside of one, always."""
    token = _READ.set({})
    try:
        yield
    finally:
        _READ.reset(token)


def digest_once(path: Path) -> str:
    """The SHA-256 of a file's bytes.

    Raises:
        OSError: the file is missing or cannot be read.
    """
    read = _READ.get()
    if read is None:
        return file_digest(path)
    mark = _mark(path)
    known = read.get(path)
    if known is not None and known[0] == mark:
        return known[1]
    before, found = time.time_ns() - _SETTLED_NS, file_digest(path)
    if max(mark[3:]) < before:
        read[path] = mark, found
    return found


def _mark(path: Path) -> _Mark:
    found = path.stat()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
