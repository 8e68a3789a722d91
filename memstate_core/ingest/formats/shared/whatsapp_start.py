"""How the first line of a WhatsApp message begins: date and time in the style of the phone that exported the chat.

Invariant: a line that only resembles such a beginning is known for one, so that it is never part of another message.
"""

from __future__ import annotations

import re

from memstate_core.ingest.formats.shared.date_order import Written

MARKS = "\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff"
_NO_MARKS = str.maketrans("", "", MARKS)
_MARKED = 60
"""Direction marks stand among the first characters, between the numbers of dates in Arabic, Hebrew and Persian."""
_MORNING = r"[Aa]\.?\s?[Mm]\.?|上午|凌晨|清晨|早上|오전|午前|ص|ق\.?ظ\.?|π\.?μ\.?"
_AFTERNOON = r"[Pp]\.?\s?[Mm]\.?|下午|中午|晚上|오후|午後|م|ب\.?ظ\.?|μ\.?μ\.?"
_AT = r"klo|kl\.?|at|um|om|à|às|as|a las|alle|ore|o|в|saat|pukul|jam|lúc|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)\.?"
"""Words between date and time. Others may be a half of the day, so that the time cannot be known."""
_START = re.compile(
    r"\[?(?P<written>(?P<first>\d{1,4})(?:[./-]|年|년)\s?(?P<second>\d{1,2})(?:[./-]|月|월)\s?(?P<third>\d{1,4})"
    rf"[.日일]?[,،]?\s(?:(?:{_AT})\s)?"
    rf"(?:(?P<am>{_MORNING})|(?P<pm>{_AFTERNOON}))?\s?(?P<hour>\d{{1,2}})[:.](?P<minute>\d{{2}})"
    rf"(?:[:.](?P<second_of_minute>\d{{2}}))?(?:\s?(?:(?P<am_after>{_MORNING})|(?P<pm_after>{_AFTERNOON})))?)"
    r"(?:\]\s?|\s[-\u2013\u2014]\s)(?P<rest>.*)"
)
_LETTERS = r"[^\W\d]{3,12}\.?"
_NUMBERS = r"\d{1,4}[^\d:]{1,10}\d{1,2}[^\d:]{1,10}\d{1,4}"
_NAMED_MONTH = rf"(?:\d{{1,2}}\.?\s(?:de\s)?{_LETTERS},?\s(?:de\s)?\d{{4}}|{_LETTERS}\s\d{{1,2}},?\s\d{{4}})"
_TIME = r"[^\d:]{1,20}\d{1,2}[:.]\d{2}(?:[:.]\d{2})?[^\d:]{0,20}?"
_END, _WHO = r"(?:\]\s?|\s[-\u2013\u2014]\s)", r"[^:]{1,80}:"
_LIKE_A_START = re.compile(rf"\[?(?:{_NUMBERS}{_TIME}(?:{_END}|,\s{_WHO})|{_NAMED_MONTH}{_TIME}(?:{_END}|,\s){_WHO})")


def begins(raw: bytes) -> re.Match[str] | None:
    """The beginning of a message, if a line is one; direction marks before it and in it are ignored."""
    text = _text(raw)
    found = _START.match(text) or _START.match(_unmarked(text))
    if found is not None and len(found["third"]) == 1 and len(found["first"]) < 4:
        return None  # the year has two digits, or four
    return found


def resembles_a_beginning(raw: bytes) -> bool:
    """Whether a line has what a message begins with, a date, a time and a sender, in whatever style."""
    return _LIKE_A_START.match(_unmarked(_text(raw))) is not None


def date_of(found: re.Match[str]) -> Written:
    """The three numbers of a message's date."""
    return int(found["first"]), int(found["second"]), int(found["third"])


def time_of(found: re.Match[str]) -> Written:
    """Hour, minute and second of a message; hours count from 0 to 23."""
    hour, is_afternoon = int(found["hour"]), bool(found["pm"] or found["pm_after"])
    if is_afternoon or found["am"] or found["am_after"]:
        hour = hour % 12 + 12 * is_afternoon
    return hour, int(found["minute"]), int(found["second_of_minute"] or 0)


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace").lstrip(MARKS)


def _unmarked(text: str) -> str:
    return text[:_MARKED].translate(_NO_MARKS) + text[_MARKED:]
