"""Contents in a folder, on this machine or mounted.

Invariant: an object gets its name when it is complete and flushed. A killed writer leaves a draft, which the next one
overwrites.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime
from pathlib import Path

from memstate_core.state.files import make_folder, replace_file, require_space, sync_path
from memstate_core.state.home import Home
from memstate_core.state.lock import exclusive
from memstate_core.storage.purpose import BACKUPS, Purpose
from memstate_core.storage.storage import LOCK, OBJECTS, Conflict, Listed, Unreadable, blocks_of, copied, object_name

_BESIDE = {LOCK, "backup.holder.json", "lost+found"}
"""What a folder may hold before it is first used."""
_DRAFT = ".part"
_WAIT_SECONDS = 30.0
"""How long a process waits for another one that replaces the same file."""


class FolderStorage:
    """The storage of a folder; it need not exist yet.

    Args:
        root: the folder.
        purpose: what it is used for.
    """

    def __init__(self, root: Path, purpose: Purpose = BACKUPS) -> None:
        self._root, self._purpose = root, purpose
        self._grown: set[Path] = set()
        self._adding = threading.Lock()
        self.where = str(root.absolute())

    def require_usable(self, home: Home, /) -> None:
        """Refuses a part of the home, and a folder that holds other things."""
        root = self._root
        if root.resolve().is_relative_to(home.root.resolve()):
            raise self._purpose.refused(str(root), f"it is part of the home {home.root}, and would be lost with it")
        if root.exists() and not root.is_dir():
            raise self._purpose.refused(str(root), "it is a file")
        allowed = _BESIDE | self._purpose.beside
        others = sorted(path.name for path in root.iterdir() if path.name not in allowed) if root.is_dir() else []
        if others and not (root / self._purpose.mark).is_dir():
            raise self._purpose.refused(str(root), f"it holds other files, such as {others[0]}")

    def require_room(self, size: int) -> None:
        """Refuses what the disk has no room for."""
        require_space(self._root, size)

    def locked(self, home: Home, holder: str) -> AbstractContextManager[None]:
        """Makes the folder, marks it, and holds its lock file."""
        make_folder(self._root / self._purpose.mark)
        return exclusive(self._root / LOCK, f"{holder} of {home.root}")

    def sizes(self, folder: str) -> Mapping[str, int]:
        """The bytes of all files below a folder."""
        return {name: each.size for name, each in self.listed(folder).items()}

    def listed(self, folder: str) -> Mapping[str, Listed]:
        """All files below a folder."""
        found: dict[str, Listed] = {}
        for path in (self._root / folder).rglob("*"):
            with suppress(FileNotFoundError):  # removed meanwhile
                if path.is_file():
                    state = path.stat()
                    written_at = datetime.fromtimestamp(state.st_mtime, UTC)
                    found[path.relative_to(self._root).as_posix()] = Listed(state.st_size, written_at)
        return found

    def blocks(self, name: str) -> Iterator[bytes]:
        """The bytes of a file."""
        try:
            yield from blocks_of(self._root / name)
        except FileNotFoundError:
            raise Unreadable("is missing") from None
        except OSError as error:
            raise Unreadable(f"cannot be read: {error.strerror}") from None

    def write(self, name: str, content: bytes) -> None:
        """Flushes the names of the objects that were added, then replaces the file."""
        for folder in sorted(self._grown):
            sync_path(folder)
        self._grown.clear()
        make_folder((self._root / name).parent)
        replace_file(self._root / name, content)

    def read(self, name: str) -> tuple[bytes, str] | None:
        """A file with the digest of its content."""
        try:
            content = (self._root / name).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._purpose.unreachable(self.where, f"{name} cannot be read: {error.strerror}") from None
        return content, hashlib.sha256(content).hexdigest()

    def replace(self, name: str, content: bytes, version: str | None) -> str:
        """Replaces a file while no other process does, if its content has this digest."""
        path = self._root / name
        with exclusive(path.with_name(f".{path.name}.lock"), f"process {os.getpid()}", _WAIT_SECONDS):
            found = self.read(name)
            if (None if found is None else found[1]) != version:
                raise Conflict
            self.write(name, content)
        return hashlib.sha256(content).hexdigest()

    def create(self, name: str, content: bytes) -> bool:
        """Writes a draft of its own, which gets the name if no file has it."""
        path = self._root / name
        draft = path.with_name(f".{secrets.token_hex(8)}{_DRAFT}")
        try:
            make_folder(path.parent)
            copied([content], draft)
            try:
                os.link(draft, path)
            except FileExistsError:
                sync_path(path.parent)
                return False
            except OSError:  # a file system without hard links
                draft.replace(path)
            finally:
                draft.unlink(missing_ok=True)
            sync_path(path.parent)
        except OSError as error:
            raise self._purpose.unreachable(self.where, f"{name} cannot be written: {error.strerror}") from None
        return True

    def add(self, source: Path, expected: str | None) -> tuple[str, int]:
        """Copies a file, one at a time; the digest is that of the bytes that were copied."""
        with self._adding:
            return self._add(source, expected)

    def _add(self, source: Path, expected: str | None) -> tuple[str, int]:
        draft = self._root / OBJECTS / _DRAFT
        make_folder(draft.parent)
        digest, size = copied(blocks_of(source), draft)
        if expected not in (None, digest):
            draft.unlink()
            return digest, size
        place = self._root / object_name(digest)
        make_folder(place.parent)
        draft.replace(place)
        self._grown.add(place.parent)
        return digest, size

    def remove(self, names: Collection[str]) -> None:
        """Removes files for good."""
        for name in names:
            (self._root / name).unlink(missing_ok=True)
        for folder in sorted({(self._root / name).parent for name in names}):
            if folder.is_dir():
                sync_path(folder)
