"""The lines of a WhatsApp chat as messages: a line that begins with a date begins a message, others continue it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from memstate_core.ingest.containers.source import Member
from memstate_core.ingest.formats.shared.date_order import Written
from memstate_core.ingest.formats.shared.message import refused_row
from memstate_core.ingest.raw_rows import RawRow, line_rows
from memstate_core.ingest.reasons import Reason

MARKS = "\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff"
_HALF = r"[AaPp]\.?\s?[Mm]\.?|上午|下午|오전|오후|午前|午後"
_AFTERNOON = ("p", "P", "下", "오후", "午後")
_START = re.compile(
    r"\[?(\d{1,4})[./-]\s?(\d{1,2})[./-]\s?(\d{2,4})\.?,?\s(?:[^\W\d]{1,4}\.?\s)?"
    rf"({_HALF})?\s?(\d{{1,2}})[:.](\d{{2}})(?:[:.](\d{{2}}))?(?:\s?({_HALF}))?(?:\]\s?|\s[-\u2013\u2014]\s)(.*)"
)
_SENDER = re.compile(r'([^:"“”]{1,80}?):(?![\d/])\s?(.*)')
_MOST_BLANK_LINES, _BYTES_A_LINE = 2, 64
"""How many consecutive blank lines a message keeps; and the memory that a line counts for beside its text, in bytes."""


class Message(NamedTuple):
    """A message as written: its line, the numbers of its date and time, sender and text.

    System messages have no sender. Hours count from 0 to 23.
    """

    line: int
    date: Written
    time: Written
    sender: str | None
    texts: list[str]


def begins(raw: bytes) -> re.Match[str] | None:
    """The beginning of a message, if a line is one; direction marks before it are ignored."""
    return _START.match(raw.decode("utf-8", "replace").lstrip(MARKS))


def date_of(found: re.Match[str]) -> Written:
    """The three numbers of a message's date."""
    return int(found[1]), int(found[2]), int(found[3])


def messages(member: Member, longest: int) -> Iterator[Message | RawRow]:
    """Messages with their continuation lines; lines that are not text, or belong to no message, are refused.

    Args:
        member: the chat.
        longest: the most bytes that a message may have.
    """
    last: Message | None = None
    line = size = 0
    for row in line_rows(member.blocks(), longest):
        found, blank, line = begins(row.raw), row.line - line - 1, row.line
        size = row.length if found else size + row.length + _BYTES_A_LINE
        if found and last is not None:
            yield last
            last = None
        refused = _refused(row, member.name, bool(found or last), size > longest)
        if refused is not None:
            yield refused
        elif found:
            last = _begun(row.line, found)
        elif last is not None:
            last.texts.extend([*[""] * min(blank, _MOST_BLANK_LINES), row.raw.decode().lstrip(MARKS)])
    if last is not None:
        yield last


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
    half = found[4] or found[8]
    hour = int(found[5])
    if half:
        hour = hour % 12 + 12 * half.startswith(_AFTERNOON)
    said = _SENDER.fullmatch(found[9])
    sender = said[1].strip(MARKS + "~ \u202f\xa0") if said else None
    text = said[2] if said and sender else found[9]
    return Message(line, date_of(found), (hour, int(found[6]), int(found[7] or 0)), sender or None, [text])
