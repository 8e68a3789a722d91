"""Databases that stay open between the steps of a run, in the thread that runs them.

Opening a graph costs some ten milliseconds, whatever its size, and the steps of a night use three graphs a dozen times.
A graph that is not small is closed after each use: there the cost does not matter, and its memory is needed.

The invariant: what is handed out is the file that its path names now, and a file has one database at a time.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SMALL = 64 << 20
"""Maximum size in bytes of a file that stays open."""

MOST_OPEN = 4
"""Maximum number of files that stay open while nobody uses them; that used longest ago is closed first."""

Open = Callable[[], AbstractContextManager[Any]]


@dataclass(eq=False)
class _Kept:
    """A database, the path that it was opened by, how many use it, and which file it was when last used."""

    path: Path
    writes: bool
    database: Any
    stack: ExitStack
    users: int = 0
    file: tuple[int, ...] = ()

    def is_of(self, path: Path) -> bool:
        """Whether its file is the one at a path, and nobody else has written it since."""
        return bool(self.file) and self.file == _identity(path, self.writes)

    def close(self) -> None:
        """Closes it, and forgets it."""
        if _REGISTRY.kept is not None and self in _REGISTRY.kept:
            _REGISTRY.kept.remove(self)
        self.stack.close()


@dataclass
class _Registry(threading.local):
    kept: list[_Kept] | None = field(default=None)


_REGISTRY = _Registry()


@contextmanager
def kept_open() -> Iterator[None]:
    """Within it, small databases stay open in this thread; at its end all are closed."""
    if _REGISTRY.kept is not None:
        yield
        return
    _REGISTRY.kept = []
    try:
        yield
    finally:
        with ExitStack() as closing:
            for kept in _REGISTRY.kept:
                closing.push(kept.stack)
        _REGISTRY.kept = None


@contextmanager
def opened(path: Path, writes: bool, open_: Open) -> Iterator[Any]:
    """A database, opened now or kept from an earlier use; one whose use failed is not kept.

    Args:
        path: its one file.
        writes: whether the caller writes; one that is kept for writing serves readers as well.
        open_: opens it.
    """
    everything = _REGISTRY.kept
    if everything is None:
        with open_() as database:
            yield database
        return
    kept = _found(everything, path, writes) or _new(everything, path, writes, open_)
    kept.users += 1
    try:
        yield kept.database
        kept.file = _identity(path, kept.writes, SMALL)
    except BaseException:
        kept.file = ()
        raise
    finally:
        kept.users -= 1
        _close_some(everything, kept)


def close_kept(folder: Path) -> None:
    """Closes what is kept open of a file, or of a folder, that is about to be copied or removed."""
    for kept in [kept for kept in _REGISTRY.kept or [] if kept.path.is_relative_to(folder)]:
        kept.close()


def _found(everything: list[_Kept], path: Path, writes: bool) -> _Kept | None:
    """What is kept of a file; other databases of its path or of the same file are closed, unless they are in use."""
    place = _identity(path, writes=True)
    for kept in [*everything]:
        if kept.is_of(path) and (kept.writes or not writes):
            return kept
        if not kept.users and (kept.path == path or kept.file[: len(place)] == place):
            kept.close()
    return None


def _new(everything: list[_Kept], path: Path, writes: bool, open_: Open) -> _Kept:
    with ExitStack() as stack:
        kept = _Kept(path, writes, stack.enter_context(open_()), stack)
        kept.stack = stack.pop_all()
    everything.append(kept)
    return kept


def _close_some(everything: list[_Kept], used: _Kept) -> None:
    """Closes what was used just now if it is not to be kept, and those used longest ago if there are too many."""
    if used.users or used not in everything:
        return
    if not used.file:
        used.close()
        return
    everything.remove(used)
    everything.append(used)
    for kept in [kept for kept in everything if not kept.users][:-MOST_OPEN]:
        kept.close()


def _identity(path: Path, writes: bool, most: float = math.inf) -> tuple[int, ...]:
    """Identifies a file: where it lies on the disk, and of one that is only read also its last change.

    It is empty where there is no file, or one of more bytes than given.
    """
    with suppress(FileNotFoundError):
        found = path.stat()
        place = (found.st_dev, found.st_ino)
        if found.st_size <= most:
            return place if writes else (*place, found.st_size, found.st_mtime_ns)
    return ()
