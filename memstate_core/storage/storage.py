"""Where contents are kept by name: a folder, or object storage named by a URL.

Names in a storage are relative, with `/` between their parts. Invariant: what has a name is complete.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import NamedTuple, Protocol
from urllib.parse import unquote, urlsplit

from memstate_core.state.files import PRIVATE_FILE
from memstate_core.state.home import Home
from memstate_core.storage.purpose import BACKUPS, Purpose

OBJECTS, LOCK = "objects", "backup.lock"
BLOCK = 1 << 20
CLOUD = ("s3", "gs", "az")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/").match
_SCHEMES = ", ".join(f"{scheme}://" for scheme in ("file", *CLOUD))


class Unreadable(Exception):
    """Something in a storage is missing or cannot be read; the text continues a sentence that names it."""


class Conflict(Exception):
    """A content is not the one that was read before; nothing was written."""


class Listed(NamedTuple):
    """The bytes of a content, and when it was written, by the clock of the storage."""

    size: int
    written_at: datetime


class Storage(Protocol):
    """What backups, and snapshots that are published for replicas, need of the place where they are kept.

    Attributes:
        where: its address, as messages and the note of the last backup name it.
    """

    where: str

    def require_usable(self, home: Home, /) -> None:
        """Refuses a place that is part of a home, or holds other things; raises BackupRefused or PublicationRefused."""

    def require_room(self, size: int) -> None:
        """Refuses bytes that there is no room for, where that can be known; raises DiskFull."""

    def locked(self, home: Home, holder: str) -> AbstractContextManager[None]:
        """Keeps other writers out; the caller keeps other backups of this home out. Raises StoreLocked."""

    def sizes(self, folder: str) -> Mapping[str, int]:
        """The bytes of everything below a folder, by name; empty where there is none."""

    def listed(self, folder: str) -> Mapping[str, Listed]:
        """Everything below a folder, by name; empty where there is none."""

    def blocks(self, name: str) -> Iterator[bytes]:
        """The content of a name; raises Unreadable."""

    def write(self, name: str, content: bytes) -> None:
        """Writes or replaces a small content in one step; what was added before is durable then."""

    def read(self, name: str) -> tuple[bytes, str] | None:
        """A small content with its version, by which `replace` knows it again; None if there is none."""

    def replace(self, name: str, content: bytes, version: str | None) -> str:
        """Replaces a small content in one step, if it is of this version still; None: if there is none.

        Returns:
            The version of what is there now.

        Raises:
            Conflict: it is not; nothing was written.
        """

    def create(self, name: str, content: bytes) -> bool:
        """Writes a small content durably, unless there is one of this name; of several processes one does.

        Returns:
            Whether it was written.
        """

    def add(self, source: Path, expected: str | None) -> tuple[str, int]:
        """Adds a file as an object, unless it has another digest than expected; returns its digest and size."""

    def remove(self, names: Collection[str]) -> None:
        """Removes names; one that is gone already is no error."""


def storage(where: Path | str, purpose: Purpose = BACKUPS) -> Storage:
    """The storage of an address: a folder, or a URL.

    Raises:
        BackupRefused: the URL is of no kind that is known, or holds credentials; PublicationRefused likewise.
        CloudUnavailable: the package for object storage is missing.
    """
    from memstate_core.storage.folder import FolderStorage

    address = str(where)
    if not _URL(address):
        return FolderStorage(Path(where), purpose)
    parts = urlsplit(address)
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise purpose.refused(
            f"{parts.scheme}://…", "its address holds credentials or options, expected in the environment"
        )
    if "://" in address and parts.scheme == "file" and parts.netloc in ("", "localhost") and parts.path:
        return FolderStorage(Path(unquote(parts.path)), purpose)
    if parts.scheme not in CLOUD or not parts.netloc:
        raise purpose.refused(address, f"it is no URL of a folder or bucket ({_SCHEMES})")
    from memstate_core.storage.cloud import cloud_storage

    return cloud_storage(address.rstrip("/"), purpose)


def below(where: Path | str, name: str) -> Path | str:
    """The address of a folder below an address."""
    return f"{str(where).rstrip('/')}/{name}" if _URL(str(where)) else Path(where) / name


def object_name(sha256: str) -> str:
    """The name of the object of a digest."""
    return f"{OBJECTS}/{sha256[:2]}/{sha256[2:]}"


def blocks_of(path: Path) -> Iterator[bytes]:
    """The bytes of a file."""
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            yield block


def copied(blocks: Iterable[bytes], target: Path) -> tuple[str, int]:
    """Writes a file for its owner alone and flushes it.

    Returns:
        The SHA-256 and the number of its bytes.
    """
    running, size = hashlib.sha256(), 0
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    with os.fdopen(os.open(target, flags, PRIVATE_FILE), "wb") as copy:
        for block in blocks:
            running.update(block)
            size += len(block)
            copy.write(block)
        copy.flush()
        os.fsync(copy.fileno())
    return running.hexdigest(), size
