"""Formats made of JSON objects, one for each conversation or event: array, lines, or a single object.

A reader of such a format defines which objects it recognises and the turns of each. Everything else is done here:
streaming, members of archives, and refused rows for unreadable content.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any, NamedTuple

from memstate_core.ingest.containers.json_array import array_rows
from memstate_core.ingest.containers.sniff import BOM, begins_pretty
from memstate_core.ingest.containers.source import Member, Source
from memstate_core.ingest.formats.shared.base import Reader, Reading
from memstate_core.ingest.formats.shared.message import Turn, refused_row, turn_row
from memstate_core.ingest.notes import Notes
from memstate_core.ingest.raw_rows import RawRow, line_rows
from memstate_core.ingest.reasons import Reason, Rejection
from memstate_core.ingest.validation.decode import decode_row
from memstate_core.ingest.validation.values import canonical

Document = dict[str, Any]


class Odd(NamedTuple):
    """An invalid part of a document, and the message about it."""

    content: Any
    detail: str


class Cleaned(NamedTuple):
    """A turn whose text is not as it was written, and the text as written, by which it is known again."""

    turn: Turn
    original: str


Turns = Callable[[Document], Iterable[Turn | Cleaned | Odd]]
"""The turns of one object; may raise a Rejection before the first one."""

_SURROGATES = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[dD][89a-fA-F][0-9a-fA-F]{2}|\\[^u]"
)
_HALF_SURROGATE = 6


def document_reader(
    expected: str, members: str, knows: Callable[[Document], bool], begin: Callable[[Notes], Turns]
) -> Reader:
    """A reader of JSON objects.

    Args:
        expected: the description of the format in error messages.
        members: a pattern of its paths in an archive.
        knows: whether an object has this format; one at the beginning of a file is enough.
        begin: called for each file or member; returns a function from its objects, in order, to turns.
    """
    names = re.compile(members)

    def recognises(source: Source) -> bool:
        return any(knows(found) for member in source.matching(names)[:3] for found in member.objects)

    def rows(source: Source, reading: Reading) -> Iterator[RawRow]:
        for member in source.matching(names):
            yield from member.guarded(_turn_rows(member, begin(reading.notes), reading.longest))

    return Reader(expected, recognises, rows)


def elements(blocks: Iterable[bytes], longest: int) -> Iterator[RawRow]:
    """The objects of a JSON array, of JSON Lines, or the only one of a file, undecoded.

    Raises:
        BrokenContainer: an array does not close.
    """
    blocks = iter(blocks)
    first = next(blocks, b"").removeprefix(BOM)
    while not first.strip() and (more := next(blocks, b"")):
        first = more
    text = first.lstrip()
    if begins_pretty(text):
        return array_rows(chain((b"[", first), blocks, (b"]",)), longest)
    return (array_rows if text.startswith(b"[") else line_rows)(chain((first,), blocks), longest)


def document_of(raw: bytes) -> Document:
    """The object of a row; unpaired surrogates, as in cut text, are read as U+FFFD.

    Raises:
        Rejection: it is malformed, nested too deeply, or not an object.
    """
    try:
        return decode_row(raw)
    except Rejection:
        mended = _SURROGATES.sub(lambda found: rb"\ufffd" if _is_half(found[0]) else found[0], raw)
        if mended == raw:
            raise
        return decode_row(mended)


def _is_half(escape: bytes) -> bool:
    return len(escape) == _HALF_SURROGATE


def _turn_rows(member: Member, turns: Turns, longest: int) -> Iterator[RawRow]:
    for row in elements(member.blocks(), longest):
        if row.sha256 is not None:
            yield RawRow(row.line, row.raw, row.length, row.sha256, member.name)
            continue
        try:
            for turn in turns(document_of(row.raw)):
                yield _row(row.line, member.name, turn)
        except Rejection as refused:
            yield refused_row(row.line, member.name, row.raw, refused.reason, refused.detail)


def _row(line: int, member: str | None, turn: Turn | Cleaned | Odd) -> RawRow:
    if isinstance(turn, Odd):
        return refused_row(line, member, canonical(turn.content), Reason.WRONG_TYPE, turn.detail)
    if isinstance(turn, Cleaned):
        return turn_row(line, member, turn.turn, turn.original)
    return turn_row(line, member, turn)
