"""Files that left the inbox and grew after all return to it, so that rows which a late writer adds are read.

The size of each file is recorded when it is moved, for a week. A file that returns is read again from its beginning;
its known rows are duplicates.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from memstate_core.ingest.api_files import written_at
from memstate_core.state.files import make_folder, replace_file
from memstate_core.state.home import Home

KEPT_SECONDS = 7 * 86_400.0


@dataclass(frozen=True)
class Moved:
    """A file that was moved.

    Attributes:
        path: where it is now, below the inbox.
        size: its size in bytes when it was read.
        at: when it was moved, in seconds since 1970.
    """

    path: str
    size: int
    at: float


class MovedFiles:
    """The record of moved files, one JSON document a line.

    Args:
        home: the home of the inbox.
    """

    def __init__(self, home: Home) -> None:
        self._inbox, self._file = home.inbox, home.imports / "moved.jsonl"

    def add(self, path: Path, size: int, at: float) -> None:
        """Records a file that is about to be moved, unless a server wrote it, complete.

        Args:
            path: where it will be.
            size: its size in bytes when it was read.
            at: the time, in seconds since 1970.
        """
        if written_at(path.name) is not None:
            return
        make_folder(self._file.parent)
        with self._file.open("a") as file:
            file.write(_line(Moved(str(path.relative_to(self._inbox)), size, at)))

    def grown(self) -> list[Path]:
        """The files that are longer than when they were read."""
        return [path for path, moved in self._present().items() if path.lstat().st_size > moved.size]

    def forget(self, paths: list[Path], now: float) -> None:
        """Ends the record of files, of those that are gone, and of those that were moved long ago.

        Args:
            paths: the files.
            now: the time, in seconds since 1970.
        """
        present = self._present().items()
        kept = [moved for path, moved in present if path not in paths and now - moved.at < KEPT_SECONDS]
        if len(kept) == len(self._lines()):
            return
        replace_file(self._file, "".join(map(_line, kept)).encode())

    def _present(self) -> dict[Path, Moved]:
        """The last record of each file that is still there."""
        found = {self._inbox / moved.path: moved for line in self._lines() if (moved := _parsed(line)) is not None}
        return {path: moved for path, moved in found.items() if path.is_file() and not path.is_symlink()}

    def _lines(self) -> list[str]:
        try:
            return self._file.read_text().splitlines()
        except FileNotFoundError:
            return []


def _line(moved: Moved) -> str:
    return json.dumps(asdict(moved)) + "\n"


def _parsed(line: str) -> Moved | None:
    """A record, or None if a kill or a damage left the line incomplete."""
    try:
        given: dict[str, Any] = json.loads(line)
        return Moved(str(given["path"]), int(given["size"]), float(given["at"]))
    except (ValueError, KeyError, TypeError):
        return None
