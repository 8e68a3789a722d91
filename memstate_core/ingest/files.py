"""Dumps on disk: which files a path means, and the rows of each in batches, whatever its format.

The content decides how a file is read; only a line file (.jsonl, .ndjson) stays one whatever its first
line is. Every error of reading leaves here as an UnreadableDump, after the rows that came before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import BinaryIO

import pyarrow.parquet as pq
from pyarrow import ArrowException

from memstate_core.ingest.json_array import array_rows
from memstate_core.ingest.packing import MAGIC, UNPACK_ERRORS, packing_of, unpacked
from memstate_core.ingest.parquet import parquet_rows
from memstate_core.ingest.rows import BrokenContainer, RawRow, line_rows
from memstate_core.model.errors import UnreadableDump

_FORMATS = "JSON Lines, one JSON array (either as .gz or .zst too) or parquet"
_READ_ERRORS = (OSError, ArrowException, BrokenContainer, *UNPACK_ERRORS)
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class OpenDump:
    """A dump whose rows are being read.

    Attributes:
        path: the file.
        total: its size on disk in bytes.
        position: how many of these were read, given the number of the last row.
        rows: its rows, unread.
    """

    path: Path
    total: int
    position: Callable[[int], int]
    rows: Iterator[RawRow]

    def batches(self, most_rows: int, most_bytes: int) -> Iterator[list[RawRow]]:
        """The rows in lists of at most so many, that end sooner once they hold so many bytes.

        Raises:
            UnreadableDump: the file is damaged; all whole rows before the damage have been given.
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
        except _READ_ERRORS as problem:
            error = problem
        if batch:
            last = batch[-1].line
            yield batch
        if error is not None:
            raise UnreadableDump(str(self.path), _problem(error), last)


def dumps_in(folder: Path) -> list[Path]:
    """The files directly in a folder, by name, without hidden ones and those still being written."""
    return sorted(
        path
        for path in folder.iterdir()
        if not path.name.startswith(".") and path.suffix.lower() not in (".tmp", ".part") and path.is_file()
    )


def dumps_of(path: Path) -> list[Path]:
    """The files that a path means: itself, or the dumps of a folder.

    Raises:
        UnreadableDump: nothing is there, or a folder without dumps.
    """
    try:
        found = dumps_in(path) if path.is_dir() else [path] if path.exists() else None
    except OSError as error:
        raise UnreadableDump(str(path), _problem(error)) from None
    if found is None:
        raise UnreadableDump(str(path), "there is no such file")
    if not found:
        raise UnreadableDump(str(path), f"the folder holds no dump, expected {_FORMATS}")
    return found


@contextmanager
def open_dump(path: Path, longest: int) -> Iterator[OpenDump]:
    """Opens a dump of any format.

    Args:
        path: the file.
        longest: the most bytes that a row may have without being cut.

    Raises:
        UnreadableDump: it cannot be opened, or is not what its name promises.
    """
    with ExitStack() as stack:
        try:
            dump = _dump(path, stack.enter_context(path.open("rb")), longest)
        except _READ_ERRORS as error:
            raise UnreadableDump(str(path), _problem(error)) from None
        yield dump


def _dump(path: Path, file: BinaryIO, longest: int) -> OpenDump:
    total = path.stat().st_size
    packing = packing_of(path, file)
    if packing == ".parquet":
        table = pq.ParquetFile(file, pre_buffer=False)
        count = max(1, table.metadata.num_rows)
        return OpenDump(path, total, lambda line: total * line // count, parquet_rows(table, longest))
    rows = _text_rows(unpacked(file, packing), _layout(path), longest)
    return OpenDump(path, total, lambda _line: file.tell(), rows)


def _layout(path: Path) -> str:
    """The suffix that says how rows are laid out, without the one that says how the file is packed."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    return next((suffix for suffix in reversed(suffixes) if suffix not in MAGIC), "")


def _text_rows(blocks: Iterator[bytes], layout: str, longest: int) -> Iterator[RawRow]:
    first = next(blocks, b"").removeprefix(_BOM)
    if layout not in (".jsonl", ".ndjson"):
        if layout != ".json" and b"\0" in first:
            raise BrokenContainer(f"it holds binary data of no known format, expected {_FORMATS}")
        if first.lstrip().startswith(b"["):
            return array_rows(chain((first,), blocks), longest)
    return line_rows(chain((first,), blocks), longest)


def _problem(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error).strip().partition("\n")[0] or type(error).__name__
