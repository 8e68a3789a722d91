"""A folder of backups, or the same in object storage.

`backups/N.json` lists the files of one backup, `objects/` holds their bytes.

Invariant: the list of a backup is written last and in one step, so a backup that was interrupted does not exist.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Collection
from datetime import datetime
from pathlib import Path, PurePosixPath
from urllib.parse import quote, unquote_to_bytes

import msgspec
from msgspec import Struct
from msgspec import json as msgjson

from memstate_core.model.errors import BackupDamaged, BackupNotFound
from memstate_core.storage.objects import Objects
from memstate_core.storage.purpose import BACKUPS
from memstate_core.storage.storage import Unreadable, storage

FORMAT = 1
LISTS = BACKUPS.mark
_LIST = re.compile(rf"{LISTS}/([0-9]+)\.json").fullmatch


class BackupFile(Struct, frozen=True):
    """One file of a backup.

    Attributes:
        path: its place below the home, escaped as in URLs, since names need not be UTF-8.
        size: its bytes.
        sha256: their digest, which names the object.
        modified: its modification time, in nanoseconds since 1970.
    """

    path: str
    size: int
    sha256: str
    modified: int


class Backup(Struct, frozen=True, kw_only=True):
    """What a backup holds.

    Attributes:
        number: its number in the folder.
        at: when it was begun, by the machine's clock.
        home: the folder of the store.
        snapshots: the names of the served snapshots.
        state_hash: their combined state hash; None before the first night.
        files: every file.
        left_out: files that are not in it, each with the reason.
        format: the version of this format.
    """

    number: int
    at: datetime
    home: str
    snapshots: list[str]
    state_hash: str | None
    files: list[BackupFile]
    left_out: list[str]
    format: int = FORMAT

    @property
    def size(self) -> int:
        """Bytes of its files."""
        return sum(file.size for file in self.files)


class _Sealed(Struct, frozen=True):
    sha256: str
    backup: msgspec.Raw


class BackupFolder:
    """The backups in a folder or at a URL.

    Args:
        where: the folder or URL; nothing need be there yet.

    Attributes:
        storage: where they are kept.
        objects: the bytes of all files.

    Raises:
        BackupRefused: the URL is of no kind that is known, or holds credentials.
        CloudUnavailable: the package for object storage is missing.
    """

    def __init__(self, where: Path | str) -> None:
        self.storage = storage(where)
        self.objects = Objects(self.storage)

    def numbers(self) -> list[int]:
        """The numbers of its backups, oldest first."""
        return sorted(int(found[1]) for name in self.storage.sizes(LISTS) if (found := _LIST(name)))

    def read(self, number: int | None = None) -> Backup:
        """A backup; the newest one if no number is given.

        Raises:
            BackupNotFound: there is none, or none of this number.
            BackupDamaged: its list is not as it was written.
        """
        known = self.numbers()
        wanted = number if number is not None else max(known, default=None)
        if wanted is None or wanted not in known:
            raise BackupNotFound(self.storage.where, known, number)
        return self._read(wanted)

    def write(self, backup: Backup) -> None:
        """Adds a backup, whose objects are there."""
        body = msgjson.encode(backup)
        sealed = _Sealed(hashlib.sha256(body).hexdigest(), msgspec.Raw(body))
        self.storage.write(_list_name(backup.number), msgjson.encode(sealed))

    def remove(self, numbers: Collection[int]) -> None:
        """Removes lists of backups; their objects stay."""
        self.storage.remove([_list_name(number) for number in numbers])

    def name(self, number: int) -> str:
        """A backup as messages call it."""
        return f"backup {number} in {self.storage.where}"

    def _read(self, number: int) -> Backup:
        shown = _list_name(number)
        try:
            sealed = msgjson.decode(b"".join(self.storage.blocks(shown)), type=_Sealed)
            found = hashlib.sha256(sealed.backup).hexdigest()
            if found != sealed.sha256:
                raise ValueError(f"its list has SHA-256 {found}, written was {sealed.sha256}")
            backup = msgjson.decode(sealed.backup, type=Backup)
            if (backup.format, backup.number) != (FORMAT, number):
                raise ValueError(f"it is backup {backup.number} of format {backup.format}, expected format {FORMAT}")
        except (Unreadable, ValueError) as error:
            raise BackupDamaged(self.name(number), [f"{shown}: {error}"]) from None
        return backup


def _list_name(number: int) -> str:
    return f"{LISTS}/{number}.json"


def escaped(path: Path) -> str:
    """A relative path as a list of files has it."""
    return quote(os.fsencode(path), safe="/ ")


def place(path: str) -> Path:
    """The relative path that a list of files means.

    Raises:
        ValueError: it would lead out of the home.
    """
    found = PurePosixPath(os.fsdecode(unquote_to_bytes(path)))
    if found.is_absolute() or ".." in found.parts or not found.parts:
        raise ValueError(f"{path} is not a place below a home")
    return Path(found)
