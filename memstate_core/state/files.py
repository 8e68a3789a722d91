"""Durable files and private folders: what every writer of a home shares.

Invariant: what one of these functions made survives a power cut when it returns.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
from pathlib import Path

from memstate_core.model.errors import DiskFull

PRIVATE_FOLDER, PRIVATE_FILE, PRIVATE_UMASK = 0o700, 0o600, 0o077
"""Modes of what memstate creates: a home holds what people said, so only its owner may read it.

Processes of memstate set the umask, since libraries (Delta, Kuzu, SQLite, Dagster) create most of the files.
"""

RESERVED_BYTES = 64 << 20
"""Free space that is left to others: below it, a database that meets a full disk aborts the process."""
_NOTHING_LEFT = 1 << 20
"""Free space below which SQLite cannot be expected to open a database, since that has files of its own beside it."""


def sync_path(path: Path) -> None:
    """Flushes a file or a folder to disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def replace_file(path: Path, content: bytes) -> None:
    """Writes a file for its owner alone, or replaces it, in one step; readers see the old content or the new one.

    One writer at a time; a draft that a killed one left is overwritten by the next.

    Raises:
        OSError: it could not be written; the old content stays.
    """
    draft = path.with_name(f".{path.name}.part")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE_FILE), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
    sync_path(path.parent)


def make_folder(folder: Path) -> None:
    """Creates a folder and its missing parents, for their owner alone; does nothing where it exists.

    Raises:
        FileExistsError: a file is in its place.
    """
    missing = []
    while not folder.is_dir():
        missing.append(folder)
        folder = folder.parent
    for path in reversed(missing):
        path.mkdir(PRIVATE_FOLDER, exist_ok=True)
        sync_path(path.parent)


def link_or_copy(source: Path, target: Path) -> None:
    """Makes a hard link to a file that is never rewritten in place; a copy where the file system has no links.

    Raises:
        FileNotFoundError: there is no such file.
    """
    try:
        os.link(source, target)
    except FileNotFoundError:
        raise
    except OSError:
        shutil.copy2(source, target)


def file_digest(path: Path) -> str:
    """The SHA-256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def require_space(folder: Path, needed: int) -> None:
    """Refuses work that the disk has no room for, before any of it is written.

    Args:
        folder: an existing folder on the disk.
        needed: bytes that the work may write; `RESERVED_BYTES` beside them stay free.

    Raises:
        DiskFull: less is free.
    """
    free = shutil.disk_usage(folder).free
    if free < needed + RESERVED_BYTES:
        raise DiskFull(str(folder), free, needed + RESERVED_BYTES)


def disk_problem(folder: Path) -> DiskFull | PermissionError | None:
    """Why no database below a folder can be written, whatever its library calls it; None if the disk is not the cause.

    Args:
        folder: an existing folder.
    """
    free = shutil.disk_usage(folder).free
    if free < _NOTHING_LEFT:
        return DiskFull(str(folder), free, RESERVED_BYTES)
    for path in (folder, *folder.rglob("*.db")):
        if not os.access(path, os.W_OK):
            return PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    return None
