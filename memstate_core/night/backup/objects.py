"""The objects of a backup folder: files named after the SHA-256 of their bytes, shared by all backups of the folder.

Invariant: an object gets its name when it is complete and flushed. A killed writer leaves a draft, which the next one
overwrites. One process writes at a time.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Collection
from pathlib import Path

from memstate_core.state.files import PRIVATE_FILE, file_digest, make_folder, sync_path

_BLOCK = 1 << 20
_DRAFT = ".part"
_NAME = re.compile(r"[0-9a-f]{2}/[0-9a-f]{62}").fullmatch


class Objects:
    """The objects below a folder.

    Args:
        root: the folder; it need not exist yet.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._grown: set[Path] = set()

    def path(self, sha256: str) -> Path:
        """Where the object of a digest is."""
        return self._root / sha256[:2] / sha256[2:]

    def has(self, sha256: str, size: int) -> bool:
        """Whether there is an object of this digest and size; its bytes are not read."""
        try:
            return self.path(sha256).stat().st_size == size
        except OSError:
            return False

    def add(self, source: Path, expected: str | None = None) -> tuple[str, int]:
        """Copies a file, unless its bytes have another digest than expected.

        Returns:
            The digest and the size of the bytes that were read.

        Raises:
            OSError: the file cannot be read, or its copy cannot be written.
        """
        make_folder(self._root)
        draft = self._root / _DRAFT
        digest, size = copied(source, draft)
        if expected in (None, digest):
            place = self.path(digest)
            make_folder(place.parent)
            draft.replace(place)
            self._grown.add(place.parent)
        else:
            draft.unlink()
        return digest, size

    def sync(self) -> None:
        """Flushes the names of the objects that were added."""
        for folder in sorted(self._grown):
            sync_path(folder)
        self._grown.clear()

    def problem(self, sha256: str) -> str | None:
        """What is wrong with the object of a digest, after reading it; None if nothing is."""
        try:
            found = file_digest(self.path(sha256))
        except OSError as error:
            return self.unreadable(sha256, error)
        return None if found == sha256 else self.differs(sha256, found)

    def unreadable(self, sha256: str, error: OSError) -> str:
        """A sentence about an object that cannot be read."""
        what = "is missing" if isinstance(error, FileNotFoundError) else f"cannot be read: {error.strerror}"
        return f"{self._shown(sha256)} {what}"

    def differs(self, sha256: str, found: str) -> str:
        """A sentence about an object that has other bytes."""
        return f"{self._shown(sha256)} has SHA-256 {found}, expected {sha256}"

    def keep_only(self, kept: Collection[str]) -> int:
        """Removes the objects whose digest is not among the given ones; returns how many."""
        found = (path for path in self._root.glob("??/*") if _NAME(str(path.relative_to(self._root))))
        unused = [path for path in found if path.parent.name + path.name not in kept]
        for path in unused:
            path.unlink()
        return len(unused)

    def _shown(self, sha256: str) -> str:
        return str(self.path(sha256).relative_to(self._root.parent))


def copied(source: Path, target: Path) -> tuple[str, int]:
    """Copies a file for its owner alone and flushes it.

    Returns:
        The SHA-256 and the number of the bytes that were copied.
    """
    running, size = hashlib.sha256(), 0
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    with source.open("rb") as file, os.fdopen(os.open(target, flags, PRIVATE_FILE), "wb") as copy:
        while block := file.read(_BLOCK):
            running.update(block)
            size += len(block)
            copy.write(block)
        copy.flush()
        os.fsync(copy.fileno())
    return running.hexdigest(), size
