"""Splitting a file's bytes into raw rows, by line; JSON arrays and Parquet have modules of their own.

Rows are not parsed here. Invariant: memory is bounded whatever a file contains. Of a row beyond the longest allowed
only the first megabyte, the length and the SHA-256 are kept.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Protocol

from msgspec import Struct

from memstate_core.ingest.reasons import Reason

KEPT_OF_LONG_ROW = 1 << 20


class RawRow(Struct, frozen=True, gc=False):
    """One unparsed row. Not tracked by the garbage collector, since it cannot be part of a reference cycle.

    Attributes:
        line: its number in the file, from 1: of the line, of the element, of the parquet row.
        raw: its bytes, or the first megabyte of a row that is too long.
        length: its number of bytes.
        sha256: digest of the full row; None where `raw` is the full row.
        member: the archive member that it came from.
        identity: SHA-256 of the part that stays the same in newer exports, where the reader knows it; None means
            the whole row.
        reason: the reason of refusal, if it is already known.
        detail: the sentence that explains the reason.
    """

    line: int
    raw: bytes
    length: int
    sha256: str | None = None
    member: str | None = None
    identity: str | None = None
    reason: Reason | None = None
    detail: str = ""


class BrokenContainer(Exception):
    """The file around the rows is damaged; the message says where and how."""


class _Digest(Protocol):
    """A running hash, as `hashlib` makes it; the library names no public type."""

    def update(self, data: bytes, /) -> None: ...

    def hexdigest(self) -> str: ...


class RowAssembler:
    """Joins the pieces of a row, and drops the bytes of one that grows too long."""

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._start()

    def _start(self) -> None:
        self.length = 0
        self._pieces: list[bytes] = []
        self._digest: _Digest | None = None

    def add(self, piece: bytes) -> None:
        """Adds the next bytes of the current row."""
        self.length += len(piece)
        if self._digest is not None:
            self._digest.update(piece)
            return
        self._pieces.append(piece)
        if self.length > self._longest:
            whole = b"".join(self._pieces)
            self._digest = hashlib.sha256(whole)
            self._pieces = [whole[:KEPT_OF_LONG_ROW]]

    def finish(self, line: int, last: bytes = b"") -> RawRow | None:
        """Ends the current row and starts the next; None for a blank one."""
        if self.length or len(last) > self._longest:
            self.add(last)
            raw, length, digest = b"".join(self._pieces), self.length, self._digest
            self._start()
            if digest is not None:
                return RawRow(line, raw, length, digest.hexdigest())
        else:
            raw = last
        raw = raw.strip()
        return RawRow(line, raw, len(raw)) if raw else None


def line_rows(blocks: Iterable[bytes], longest: int) -> Iterator[RawRow]:
    """The lines of a file that are not blank, ended by LF, CRLF or the end of the file.

    Args:
        blocks: the file's bytes, in pieces of any length.
        longest: the most bytes that a line may have without being cut.
    """
    assembler = RowAssembler(longest)
    number = 0
    for block in blocks:
        *lines, rest = block.split(b"\n")
        for line in lines:
            number += 1
            row = assembler.finish(number, line)
            if row is not None:
                yield row
        assembler.add(rest)
    row = assembler.finish(number + 1)
    if row is not None:
        yield row
