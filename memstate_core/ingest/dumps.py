"""Dumps on disk: the files that a path means, and the rows of each in batches, whatever its format.

The content decides how a file is read (`memstate_core.ingest.formats`), unless a format is asked for. Whatever is
raised while one file is read, foreseen or not, leaves here as an UnreadableDump that names the file, after the rows
that came before it: one file never stops an import.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from polars.exceptions import PanicException

from memstate_core.ingest.api_files import damage, is_signed, written_at
from memstate_core.ingest.containers.compression import packing_of
from memstate_core.ingest.containers.parquet import parquet_rows
from memstate_core.ingest.containers.parquet_slices import ParquetSlices
from memstate_core.ingest.containers.source import Source, plain_source, zip_source
from memstate_core.ingest.formats import OBSERVATIONS, chosen, reader
from memstate_core.ingest.formats.shared.base import Reading
from memstate_core.ingest.notes import Notes
from memstate_core.ingest.raw_rows import BrokenContainer, RawRow
from memstate_core.ingest.unread_folders import named, unread_folders
from memstate_core.model.errors import UnreadableDump

_FORMATS = "JSON Lines, one JSON array (either as .gz or .zst too), parquet, or a chat export"
_CAREFUL = os.O_NOFOLLOW | os.O_NONBLOCK
"""Neither follow a symbolic link nor wait for the writer of a named pipe."""

READ_ERRORS = (Exception, PanicException)
"""What reading a file may raise; a panic of Polars, as for decimals of 256 bits, is no Exception."""


@dataclass(frozen=True)
class OpenDump:
    """A dump that is being read.

    Attributes:
        path: the file.
        total: its size on disk in bytes.
        position: maps the number of the last row to the number of bytes read.
        rows: its unparsed rows.
        format: the name of its format.
        notes: the reader's notes; complete once all rows are read.
    """

    path: Path
    total: int
    position: Callable[[int], int]
    rows: Iterator[RawRow]
    format: str = OBSERVATIONS
    notes: Notes = field(default_factory=Notes)

    def batches(self, most_rows: int, most_bytes: int) -> Iterator[list[RawRow]]:
        """The rows in batches of at most `most_rows` rows that end early at `most_bytes` bytes.

        Raises:
            UnreadableDump: the file is damaged; all complete rows before the damage were yielded.
        """
        batch: list[RawRow] = []
        size, last, error = 0, None, None
        try:
            for row in self.rows:
                batch.append(row)
                size += len(row.raw)
                if len(batch) >= most_rows or size >= most_bytes:
                    yield batch
                    last, batch, size = row.line, [], 0
        except READ_ERRORS as problem:
            error = problem
        if batch:
            last = batch[-1].line
            yield batch
        if error is not None:
            raise unreadable(self.path, error, last)


def shown(path: Path) -> str:
    """A path as text that every output can encode: bytes that are not UTF-8 appear as escapes."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def unreadable(path: Path, error: BaseException, line: int | None = None) -> UnreadableDump:
    """The failure of a file, given what was raised and the last row that was read."""
    return UnreadableDump(shown(path), _problem(error), line)


def dumps_in(folder: Path, *, links: bool = False) -> list[Path]:
    """The files directly in a folder, sorted by name, without hidden ones and those still being written.

    Args:
        folder: the folder.
        links: whether symbolic links are among them, whatever they point to.
    """
    return sorted(
        path
        for path in folder.iterdir()
        if not path.name.startswith(".")
        and path.suffix.lower() not in (".tmp", ".part")
        and (links if path.is_symlink() else path.is_file())
    )


def dumps_of(path: Path) -> list[Path]:
    """The file itself, or the dumps of a folder.

    Raises:
        UnreadableDump: there is no such file, or the folder has no dumps.
    """
    try:
        found = dumps_in(path, links=True) if path.is_dir() else [path] if path.exists() else None
    except OSError as error:
        raise unreadable(path, error) from None
    if found is None:
        raise UnreadableDump(shown(path), "there is no such file")
    if not found:
        folders = unread_folders(path)
        beside = f"; the folders in it are not read ({named(folders)})" * bool(folders)
        raise UnreadableDump(shown(path), f"the folder holds no dump, expected {_FORMATS}{beside}")
    return found


@contextmanager
def open_dump(
    path: Path,
    longest: int,
    format: str | None = None,
    api_key: bytes | None = None,
    *,
    follow: bool = True,
) -> Iterator[OpenDump]:
    """Opens a dump.

    Args:
        path: the file.
        longest: most bytes of a row that is kept whole.
        format: one of `memstate_core.ingest.formats.FORMATS`; recognised by the content if left out.
        api_key: the key that signs the files of the API; without it they are known by name only.
        follow: whether a symbolic link is followed.

    Raises:
        UnreadableDump: it cannot be opened, its name is not UTF-8, or it is not what its name promises or not of the
            format.
    """
    with ExitStack() as stack:
        try:
            _check_name(path)
            file = stack.enter_context(os.fdopen(os.open(path, os.O_RDONLY | (0 if follow else _CAREFUL)), "rb"))
            dump = _dump(path, file, longest, format, api_key)
        except READ_ERRORS as error:
            raise unreadable(path, error) from None
        yield dump


def _check_name(path: Path) -> None:
    try:
        path.name.encode()
    except UnicodeEncodeError:
        raise BrokenContainer("its name is not UTF-8, expected one that is") from None


def _dump(path: Path, file: BinaryIO, longest: int, format: str | None, api_key: bytes | None) -> OpenDump:
    total = path.stat().st_size
    packing = packing_of(path, file)
    if packing == ".parquet":
        if format not in (None, OBSERVATIONS):
            raise BrokenContainer(
                f"format {format} was asked for, expected {reader(format).expected}, but it is parquet"
            )
        slices = ParquetSlices(file, total)
        count = max(1, slices.metadata.num_rows)
        return OpenDump(path, total, lambda line: total * line // count, parquet_rows(slices, longest))
    source = zip_source(path, file) if packing == ".zip" else plain_source(path, file, packing)
    if format is None:
        _check_undamaged(source)
        format = OBSERVATIONS if _is_of_the_api(source, api_key) else None
    name, reading = chosen(source, format), Reading(longest)
    archive = source.archive
    rows = _rows(source, name, reading)
    if archive is None:
        return OpenDump(path, total, lambda _line: file.tell(), rows, name, reading.notes)
    archive.position = 0
    return OpenDump(path, total, lambda _line: archive.position, rows, name, reading.notes)


def _is_of_the_api(source: Source, key: bytes | None) -> bool:
    """Whether a server wrote this file; its format is then never guessed from its content."""
    return source.archive is None and (
        written_at(source.path.name) is not None or is_signed(source.members[0].blocks(), key)
    )


def _check_undamaged(source: Source) -> None:
    """Refuses a file that has changed since a server wrote it, unless a format is asked for."""
    if source.archive is None and (problem := damage(source.path.name, source.members[0].blocks())):
        raise BrokenContainer(f"{problem}; with --format {OBSERVATIONS} it is read as it is")


def _rows(source: Source, format: str, reading: Reading) -> Iterator[RawRow]:
    if source.archive is not None:
        yield from source.archive.refused_rows()
    yield from reader(format).rows(source, reading)


def _problem(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        if error.errno == errno.ELOOP:
            return "it is a symbolic link that is not followed, expected a file"
        return error.strerror
    return str(error).strip().partition("\n")[0] or type(error).__name__
