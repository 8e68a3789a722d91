"""Splitting of a streamed JSON array into the bytes of its elements, without parsing them.

Only brackets and strings are matched. So a malformed element is one refused row and not the end of the file, as long
as its brackets and quotes close, its bytes can be kept in quarantine, and memory is bounded for an array or element of
any size. ijson, at a similar speed, gives parsed values up to the first error (`tests/benchmarks/containers.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from memstate_core.ingest.raw_rows import BrokenContainer, RawRow, RowAssembler

_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_USUAL_DEPTH = 8


def _balanced(levels: int) -> bytes:
    """A pattern, without backtracking, for an object or array of at most so many levels."""
    plain = inner = rb'[^\[\]{}"]++|' + _STRING
    for _ in range(levels):
        inner = plain + rb"|[\[{](?:" + inner + rb")*+[\]}]"
    return inner.removeprefix(plain + b"|")


_TOKEN = re.compile(_STRING + b"|" + _balanced(_USUAL_DEPTH) + rb'|["\[\]{},]', re.DOTALL)
"""A string, a closed element of limited depth, or a single structural character."""

_END_OF_STRING = re.compile(_STRING[1:], re.DOTALL)


def array_rows(blocks: Iterable[bytes], longest: int) -> Iterator[RawRow]:
    """The elements of one JSON array as raw rows; blank ones are skipped.

    Args:
        blocks: the array's bytes, in pieces of any length.
        longest: most bytes of an element that is kept whole.

    Raises:
        BrokenContainer: the array does not close, or more follows after it; names the byte.
    """
    splitter = _ArraySplitter(longest)
    for block in _whole_escapes(blocks):
        yield from splitter.feed(block)
    splitter.end()


class _ArraySplitter:
    def __init__(self, longest: int) -> None:
        self._assembler = RowAssembler(longest)
        self._depth = self._number = self._offset = self._row_offset = 0
        self._in_string = self._closed = False

    def feed(self, block: bytes) -> Iterator[RawRow]:
        start = 0
        for at, token in self._tokens(block):
            self._depth += (token in b"[{") - (token in b"]}")
            if self._depth > 1 or (self._depth == 1 and token in b"]}"):
                continue
            if self._number and (row := self._assembler.finish(self._number, block[start:at])):
                yield row
            self._number += 1
            start = at + 1
            self._row_offset = self._offset + start
            if self._depth == 0:
                self._close(at, token)
                break
        self._keep(block, start)
        self._offset += len(block)

    def _tokens(self, block: bytes) -> Iterator[tuple[int, bytes]]:
        at = 0
        if self._in_string:
            end = _END_OF_STRING.match(block)
            if end is None:
                return
            self._in_string, at = False, end.end()
        if self._closed:
            return
        if not self._number:
            opening = block.find(b"[")
            if opening < 0:
                return
            yield opening, b"["
            at = opening + 1
        for match in _TOKEN.finditer(block, at):
            token = match[0]
            if token == b'"':
                self._in_string = True
                return
            if len(token) == 1:
                yield match.start(), token

    def _close(self, at: int, token: bytes) -> None:
        self._closed = True
        if token != b"]":
            raise BrokenContainer(f"byte {self._offset + at}: found }}, expected the array's closing bracket ]")

    def _keep(self, block: bytes, start: int) -> None:
        rest = block[start:]
        if not self._closed:
            self._assembler.add(rest)
        elif rest.strip():
            at = self._offset + start + len(rest) - len(rest.lstrip())
            raise BrokenContainer(f"byte {at}: found more data after the array's closing bracket, expected its end")

    def end(self) -> None:
        if not self._closed:
            raise BrokenContainer(
                f"byte {self._offset}: the data ends inside the array, in element {self._number}, which begins at "
                f"byte {self._row_offset}; expected a closing bracket"
            )


def _whole_escapes(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes, cut so that no block ends between a backslash and what it escapes."""
    held = b""
    for block in blocks:
        joined = held + block
        odd = (len(joined) - len(joined.rstrip(b"\\"))) % 2
        held = joined[len(joined) - odd :]
        yield joined[: len(joined) - odd]
    if held:
        yield held
