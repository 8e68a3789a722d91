"""A chat that WhatsApp exported: the text file, or the zip that holds it.

Each message begins on a new line with its date, in the style of the phone that wrote it; whether the day or the
month comes first is decided once for the file. Messages have no ids, so the id is `whatsapp/<hash>` of the
time as written, the sender, the text, and the number of equal messages before it in that minute. Neither its
position in the file nor the file's name matters. A session is a day: `whatsapp/<chat>/<day>`, with the chat's
name from the file's name. Times have no zone and count as UTC.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from memstate_core.ingest.containers.sniff import BOM
from memstate_core.ingest.containers.source import Member, Source
from memstate_core.ingest.formats.shared.base import Reader, Reading
from memstate_core.ingest.formats.shared.date_order import DateOrder, Written, moment_of
from memstate_core.ingest.formats.shared.message import SYSTEM, USER, Turn, turn_row
from memstate_core.ingest.formats.shared.whatsapp_start import MARKS, begins, date_of, resembles_a_beginning
from memstate_core.ingest.formats.shared.whatsapp_text import Message, messages
from memstate_core.ingest.formats.shared.whatsapp_words import NO_WORDS
from memstate_core.ingest.notes import Notes
from memstate_core.ingest.raw_rows import RawRow, line_rows
from memstate_core.ingest.reasons import shortened
from memstate_core.ingest.validation.values import canonical
from memstate_core.model.text import iso

_NAMES = re.compile(r"\.txt$", re.IGNORECASE)
_FIRST_YEAR = 2009
"""The year in which WhatsApp began: an earlier one is of another calendar."""
_IN_A_SECOND = 1_000
"""Numbers of turns that each second of a day has."""
_CHAT_NAME = re.compile(r"^WhatsApp Chat (?:with|-) |\s*\(\d+\)$")


def _recognises(source: Source) -> bool:
    return any(begins(line) for line in _first_lines(source))


def _resembles(source: Source) -> str | None:
    like = next((line for line in _first_lines(source) if resembles_a_beginning(line)), None)
    if like is None:
        return None
    shown = shortened(like.decode("utf-8", "replace"))
    return (
        f"it looks like a chat, but its dates are in a style that is not known: {shown!r}; expected one such as "
        "`31/12/20, 23:59 - Ann: Hi`, as an export has from a phone set to English. If it is no chat, "
        "`memstate import --format` names its format"
    )


def _first_lines(source: Source) -> list[bytes]:
    return [line for member in source.matching(_NAMES)[:3] for line in member.head.removeprefix(BOM).splitlines()[:5]]


def _rows(source: Source, reading: Reading) -> Iterator[RawRow]:
    for member in source.matching(_NAMES):
        yield from member.guarded(_chat(member, _chat_name(source, member), reading))


def _chat(member: Member, chat: str, reading: Reading) -> Iterator[RawRow]:
    dates = DateOrder()
    for row in line_rows(member.blocks(), reading.longest):
        if found := begins(row.raw):
            dates.see(date_of(found))
    order, remark = dates.decided()
    if remark is not None:
        reading.notes.add(f"{member.name}: {remark}" if member.name else remark)
    days = _Days(chat, order)
    for message in messages(member, reading.longest):
        if isinstance(message, RawRow):
            yield message
        elif turn := days.turn(message, reading.notes):
            yield turn_row(message.line, member.name, turn)


class _Days:
    """Converts the messages of a chat to turns.

    The number of a turn is the time of day as written and its place among the messages of that time: an export that
    begins later in the day gives it the same one.
    """

    def __init__(self, chat: str, order: str) -> None:
        self._chat, self._order = chat, order
        self._minute: tuple[Written, Written] | None = None
        self._same: Counter[tuple[str | None, str]] = Counter()

    def turn(self, message: Message, notes: Notes) -> Turn | None:
        """The message as a turn; None for one without text."""
        text = "\n".join(message.texts).strip().lstrip(MARKS)
        if not text or NO_WORDS.fullmatch(text):
            notes.left_out("message without text")
            return None
        at = moment_of(message.date, message.time, self._order)
        at = None if at is not None and at.year < _FIRST_YEAR else at
        day = "undated" if at is None else f"{at:%Y-%m-%d}"
        name, (hour, minute, second) = self._hash(message, text), message.time
        return {
            "observation_id": f"whatsapp/{name}",
            "kind": USER if message.sender else SYSTEM,
            "actor": message.sender,
            "session_id": f"whatsapp/{self._chat}/{day}",
            "turn": ((hour * 60 + minute) * 60 + second) * _IN_A_SECOND + self._same.total() - 1,
            "observed_at": iso(at) if at else message.written,
            "source_uri": f"whatsapp:{self._chat}",
            "text": text,
        }

    def _hash(self, message: Message, text: str) -> str:
        """The hash uses the date as written: a longer export may decide on another order of day and month."""
        minute = (message.date, message.time)
        if minute != self._minute:
            self._minute = minute
            self._same.clear()
        said = (message.sender, text)
        self._same[said] += 1
        first, second, year = message.date
        written = [first, second, year + 2000 * (year < 100), *message.time, *said, self._same[said]]
        return sha256(canonical(written)).hexdigest()[:32]


def _chat_name(source: Source, member: Member) -> str:
    """The name of the chat: from the text file, or from the zip if the text file has none."""
    name = Path(member.name).name if member.name else source.path.name
    name = source.path.name if name.startswith("_") else name
    return _CHAT_NAME.sub("", name.partition(".txt")[0].removesuffix(".zip")).strip() or "chat"


READER = Reader(
    "a WhatsApp chat: text whose messages begin with date, time and sender, or the zip that holds it",
    _recognises,
    _rows,
    _resembles,
)
