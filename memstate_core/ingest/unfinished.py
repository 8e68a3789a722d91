"""Which files of a folder are complete, and which are still being written.

A file is complete when it has not changed for some time and no process has it open for writing. Linux knows the latter
for files that this user owns; elsewhere only the time counts. A file whose modification time lies ahead of the clock is
watched for that time. Files that a server wrote got their names when they were complete.
"""

from __future__ import annotations

import fcntl
import os
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from memstate_core.ingest.api_files import written_at


@dataclass(frozen=True)
class WallClock:
    """The machine's clock, in seconds since 1970, and how to wait; not the logical time of a run."""

    now: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep


@dataclass(frozen=True)
class FileState:
    """What changes when a file is written to: its size in bytes and its modification time in nanoseconds."""

    size: int
    modified: int


def state_of(path: Path) -> FileState | None:
    """The state of a file, links not followed; None if it is gone."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return None
    return FileState(found.st_size, found.st_mtime_ns)


def unfinished(files: Sequence[Path], settle_seconds: float, clock: WallClock) -> list[Path]:
    """The files that are still being written, at this moment."""
    return [path for path in files if _is_fresh(path, settle_seconds, clock) or is_open_for_writing(path)]


def complete(files: Sequence[Path], settle_seconds: float, clock: WallClock) -> list[Path]:
    """The files that are complete; waits for the settle time if some that nobody has open changed within it."""
    closed = [path for path in files if not is_open_for_writing(path)]
    fresh = {path: state_of(path) for path in closed if _is_fresh(path, settle_seconds, clock)}
    if not fresh:
        return closed
    clock.sleep(settle_seconds)
    changed = {path for path, state in fresh.items() if state_of(path) != state}
    return [path for path in closed if path not in changed and not is_open_for_writing(path)]


def is_open_for_writing(path: Path) -> bool:
    """Whether a process has the file open for writing; False where the system does not know.

    Linux grants a read lease on a file only while nobody has it open for writing (fcntl(2), F_SETLEASE).
    """
    if not hasattr(fcntl, "F_SETLEASE"):
        return False
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        fcntl.fcntl(file, fcntl.F_SETSIG, signal.SIGURG)  # ignored, unlike SIGIO, if a writer breaks the lease
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(file)  # which ends the lease
    return False


def _is_fresh(path: Path, settle_seconds: float, clock: WallClock) -> bool:
    state = state_of(path)
    if state is None or path.is_symlink() or written_at(path.name) is not None:
        return False
    return clock.now() - state.modified / 1e9 < settle_seconds
