"""The lines of a WhatsApp chat as messages: a line that begins with a date begins a message, others continue it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from memstate_core.ingest.containers.source import Member
from memstate_core.ingest.formats.shared.date_order import Written
from memstate_core.ingest.formats.shared.message import refused_row
from memstate_core.ingest.formats.shared.whatsapp_start import MARKS, begins, date_of, resembles_a_beginning, time_of
from memstate_core.ingest.raw_rows import RawRow, line_rows
from memstate_core.ingest.reasons import Reason

_SENDER = re.compile(r'([^:"“”]{1,80}?):(?![\d/])\s?(.*)')
_MOST_BLANK_LINES, _BYTES_A_LINE = 2, 64
"""How many consecutive blank lines a message keeps; and the memory that a line counts for beside its text, in bytes."""


class Message(NamedTuple):
    """A message as written: its line, date and time, the numbers of both, sender and text.

    System messages have no sender. Hours count from 0 to 23.
    """

    line: int
    written: str
    date: Written
    time: Written
    sender: str | None
    texts: list[str]


def messages(member: Member, longest: int) -> Iterator[Message | RawRow]:
    """Messages with their continuation lines; lines that are not text, or belong to no message, are refused.

    So is a line that resembles the beginning of a message in another style, and what follows it up to the next message.

    Args:
        member: the chat.
        longest: the most bytes that a message may have.
    """
    last: Message | None = None
    line = size = 0
    for row in line_rows(member.blocks(), longest):
        found, blank, line = begins(row.raw), row.line - line - 1, row.line
        size = row.length if found else size + row.length + _BYTES_A_LINE
        is_other = found is None and resembles_a_beginning(row.raw)
        if (found or is_other) and last is not None:
            yield last
            last = None
        refused = _of_another_style(row, member.name) if is_other else None
        refused = refused or _refused(row, member.name, bool(found or last), size > longest)
        if refused is not None:
            yield refused
        elif found:
            last = _begun(row.line, found)
        elif last is not None:
            last.texts.extend([*[""] * min(blank, _MOST_BLANK_LINES), row.raw.decode().lstrip(MARKS)])
    if last is not None:
        yield last


def _of_another_style(row: RawRow, member: str | None) -> RawRow | None:
    if row.sha256 is not None:
        return None
    detail = "the line looks like the beginning of a message, but its date is in a style that is not known, "
    detail += "expected one such as 31/12/20, 23:59 - Ann: Hi"
    return refused_row(row.line, member, row.raw, Reason.BAD_TIME, detail)


def _refused(row: RawRow, member: str | None, belongs: bool, too_long: bool) -> RawRow | None:
    """The reason why a line is not part of a message, or None."""
    if row.sha256 is not None:
        return RawRow(row.line, row.raw, row.length, row.sha256, member)
    try:
        row.raw.decode()
    except UnicodeDecodeError as wrong:
        detail = f"byte {wrong.start} is 0x{row.raw[wrong.start]:02x} ({wrong.reason}), expected UTF-8"
        return refused_row(row.line, member, row.raw, Reason.NOT_UTF8, detail)
    if not belongs:
        detail = "the line belongs to no message, expected one that begins with a date"
        return refused_row(row.line, member, row.raw, Reason.WRONG_TYPE, detail)
    if too_long:
        detail = "the message is too long, expected one that begins with a date"
        return refused_row(row.line, member, row.raw, Reason.LINE_TOO_LONG, detail)
    return None


def _begun(line: int, found: re.Match[str]) -> Message:
    said = _SENDER.fullmatch(found["rest"])
    sender = said[1].strip(MARKS + "~ \u202f\xa0") if said else None
    text = said[2] if said and sender else found["rest"]
    return Message(line, found["written"], date_of(found), time_of(found), sender or None, [text])
