"""Which files a process has begun to read, so that the next one knows the file with which a process died.

A file that was begun and not finished when the process died (abort, SIGKILL, lack of memory) has one death more. It is
known by name, size and modification time, so a changed file starts without any.

Invariant: an exception is no death, however it ends the reading. Notes of what was begun are not synced: the system
keeps them when a process dies, and a power cut, after which they may be missing, is no file's failure.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Self

from memstate_core.ingest.dumps import shown
from memstate_core.ingest.unfinished import state_of
from memstate_core.model.errors import UnreadableDump
from memstate_core.state.files import PRIVATE_FILE, make_folder, replace_file

DEATHS = 2
"""A file with which this many processes died is not read again; one death may have another reason, such as a kill."""

INBOX, JOURNAL = "inbox", "accesses"


class _Key(NamedTuple):
    name: str
    size: int
    modified: int


class BegunFiles:
    """The notes on the files of one folder, for the length of a `with` block; one process uses them at a time.

    Args:
        folder: `Home.imports`.
        name: `INBOX` or `JOURNAL`.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._log, self._noted = notes_of(folder, name)
        self._begun: dict[Path, _Key] = {}
        self._deaths: Counter[_Key] = Counter()

    def __enter__(self) -> Self:
        self._deaths.update(_sums(self._noted))
        if self._log.exists():
            died = _sums(self._log)
            self._log.unlink()
            self._deaths.update(died.keys())
            self._save()
        return self

    def __exit__(self, *_: object) -> None:
        self._log.unlink(missing_ok=True)

    def deaths(self, path: Path) -> int:
        """How many processes died while this file was being read."""
        key = _key(path)
        return 0 if key is None else self._deaths[key]

    def begin(self, path: Path) -> None:
        """Notes that a file is about to be read."""
        if (key := _key(path)) is not None:
            make_folder(self._log.parent)
            self._begun[path] = key
            self._append(key, 1)

    def end(self, path: Path) -> None:
        """Notes that a file was read to its end; its deaths are forgotten."""
        if (key := self._begun.pop(path, None)) is not None:
            self._append(key, -1)
            self._forget(key)

    def forget(self, path: Path) -> None:
        """Forgets the deaths of a file that is about to be set aside, so that it is read again if it returns."""
        if (key := _key(path)) is not None:
            self._forget(key)

    def suspect(self, paths: Iterable[Path]) -> None:
        """Gives files all deaths but the last one, since they are parts of a file with which processes died."""
        self._deaths.update({key: DEATHS - 1 for path in paths if (key := _key(path)) is not None})
        self._save()

    def _forget(self, key: _Key) -> None:
        if self._deaths.pop(key, 0):
            self._save()

    def _append(self, key: _Key, change: int) -> None:
        handle = os.open(self._log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, PRIVATE_FILE)
        try:
            os.write(handle, _line(key, change))
        finally:
            os.close(handle)

    def _save(self) -> None:
        make_folder(self._noted.parent)
        replace_file(self._noted, b"".join(_line(key, deaths) for key, deaths in self._deaths.items()))


def notes_of(folder: Path, name: str) -> tuple[Path, Path]:
    """The files with the notes of a process that reads, and with the deaths of earlier ones."""
    return folder / f"{name}.begun", folder / f"{name}.deaths"


def why_set_aside(path: Path, deaths: int, folder: str) -> UnreadableDump:
    """The failure of a file with which processes died.

    Args:
        path: the file.
        deaths: how many processes.
        folder: where it is kept from now on, as it is called in messages.
    """
    problem = (
        f"{deaths} processes died, one after another, while it was being read (lack of memory, an abort, or a kill). "
        f"Nothing of it is lost: it is kept in {folder}, and is read again once it is moved back into the folder above"
    )
    return UnreadableDump(shown(path), problem)


def _key(path: Path) -> _Key | None:
    state = state_of(path)
    return None if state is None else _Key(path.name, state.size, state.modified)


def _line(key: _Key, change: int) -> bytes:
    return json.dumps([*key, change]).encode() + b"\n"


def _sums(file: Path) -> Counter[_Key]:
    """The sum of the lines of each file, where it is above 0; damaged lines are left out."""
    found: Counter[_Key] = Counter()
    try:
        lines = file.read_bytes().splitlines()
    except FileNotFoundError:
        return found
    for line in lines:
        with suppress(ValueError, TypeError):
            name, size, modified, change = json.loads(line)
            found[_Key(str(name), int(size), int(modified))] += int(change)
    return +found
