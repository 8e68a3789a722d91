"""The objects of a storage: contents named after the SHA-256 of their bytes, shared by all that name them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection
from pathlib import Path

from memstate_core.storage.storage import OBJECTS, Storage, Unreadable, copied, object_name

_NAME = re.compile(rf"{OBJECTS}/[0-9a-f]{{2}}/[0-9a-f]{{62}}").fullmatch


class Objects:
    """The objects of a storage, which one process changes at a time.

    Args:
        storage: the storage; what it holds is listed once, when that is first asked for.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._sizes: dict[str, int] | None = None

    def has(self, sha256: str, size: int) -> bool:
        """Whether there is an object of this digest and size; its bytes are not read."""
        return self._known().get(object_name(sha256)) == size

    def add(self, source: Path, expected: str | None = None) -> tuple[str, int]:
        """Adds a file, unless its bytes have another digest than expected.

        Returns:
            The digest and the size of the bytes that were read.

        Raises:
            OSError: the file cannot be read, or its copy cannot be written.
            BackupUnreachable: the storage does not answer.
        """
        digest, size = self._storage.add(source, expected)
        if expected in (None, digest):
            self._known()[object_name(digest)] = size
        return digest, size

    def fetch(self, sha256: str, target: Path) -> str | None:
        """Copies an object into a file; returns what is wrong with it, None if nothing is.

        Raises:
            OSError: the file cannot be written.
            BackupUnreachable: the storage does not answer.
        """
        try:
            found, _ = copied(self._storage.blocks(object_name(sha256)), target)
        except Unreadable as error:
            return f"{object_name(sha256)} {error}"
        return self._differs(sha256, found)

    def problem(self, sha256: str) -> str | None:
        """What is wrong with the object of a digest, after reading it; None if nothing is.

        Raises:
            BackupUnreachable: the storage does not answer.
        """
        running = hashlib.sha256()
        try:
            for block in self._storage.blocks(object_name(sha256)):
                running.update(block)
        except Unreadable as error:
            return f"{object_name(sha256)} {error}"
        return self._differs(sha256, running.hexdigest())

    def keep_only(self, kept: Collection[str]) -> int:
        """Removes the objects whose digest is not among the given ones; returns how many."""
        names = {object_name(sha256) for sha256 in kept}
        unused = {name for name in self._storage.sizes(OBJECTS) if _NAME(name)} - names
        self._storage.remove(unused)
        self._sizes = None
        return len(unused)

    def _known(self) -> dict[str, int]:
        if self._sizes is None:
            self._sizes = dict(self._storage.sizes(OBJECTS))
        return self._sizes

    def _differs(self, sha256: str, found: str) -> str | None:
        return None if found == sha256 else f"{object_name(sha256)} has SHA-256 {found}, expected {sha256}"
