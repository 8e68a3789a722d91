"""One writer at a time: an operating-system lock that the kernel releases when its holder dies."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from memstate_core.model.errors import StoreLocked
from memstate_core.state.files import PRIVATE_FILE, make_folder


@contextmanager
def exclusive(lock: Path, holder: str, wait_seconds: float = 0.0, *, brief: bool = False) -> Iterator[None]:
    """Holds a lock file for the length of the block.

    Args:
        lock: the file to lock; a note beside it says who holds it.
        holder: text that identifies the caller to others that wait: command, process and start.
        wait_seconds: how long to wait for another holder.
        brief: the caller holds it for a part of its work alone, so others may wait for it.

    Raises:
        StoreLocked: another process holds it; the message names it.
    """
    make_folder(lock.parent)
    note = _note(lock)
    guard = FileLock(lock, mode=PRIVATE_FILE)
    try:
        guard.acquire(timeout=wait_seconds)
    except Timeout:
        raise StoreLocked(str(lock.parent), _read_holder(note), brief=_is_brief(note)) from None
    try:
        note.write_text(json.dumps({"holder": holder} | ({"brief": True} if brief else {})))
        yield
    finally:
        note.unlink(missing_ok=True)
        guard.release()


def holder_of(lock: Path) -> str:
    """Who holds a lock; empty if nobody does. A note that the dead left beside it stays."""
    guard = FileLock(lock, mode=PRIVATE_FILE)
    if not lock.exists():
        return ""
    try:
        guard.acquire(timeout=0)
    except Timeout:
        return _read_holder(_note(lock))
    guard.release()
    return ""


def left_by_the_dead(lock: Path) -> str | None:
    """Who held a lock when it died; None if somebody holds it, or if the last holder released it.

    A holder removes its note before it releases the lock, so a note beside a free lock is that of a dead one. The next
    holder writes its own in its place.
    """
    note, guard = _note(lock), FileLock(lock, mode=PRIVATE_FILE)
    if not note.exists():
        return None
    try:
        guard.acquire(timeout=0)
    except Timeout:
        return None
    try:
        return _read_holder(note) if note.exists() else None
    finally:
        guard.release()


def _note(lock: Path) -> Path:
    return lock.with_suffix(".holder.json")


def _is_brief(note: Path) -> bool:
    try:
        return bool(json.loads(note.read_text()).get("brief"))
    except (OSError, ValueError):
        return False


def _read_holder(note: Path) -> str:
    try:
        return str(json.loads(note.read_text())["holder"])
    except (OSError, ValueError, KeyError):
        return "a process that has not yet written its name"
