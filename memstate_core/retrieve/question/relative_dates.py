"""Dates relative to the moment at which a question is asked: yesterday, last Tuesday, three weeks ago.

English only; `memstate_core.retrieve.question.local_dates` parses those of other languages. A week begins on Monday.
"""

from __future__ import annotations

import calendar
import re
from datetime import UTC, datetime, timedelta

from memstate_core.retrieve.question.date_forms import (
    Asked,
    Form,
    Span,
    day_span,
    read,
    relative,
    unit_span,
    weekday_span,
)

_DAYS = [name.lower() for name in calendar.day_name]
_COUNTS = {
    word: number
    for number, words in enumerate(("", "a an one", "two couple", "three", "four", "five", "six", "seven", "eight"))
    for word in words.split()
} | {"nine": 9, "ten": 10, "eleven": 11, "twelve": 12}
_COUNT = rf"(?P<count>\d{{1,4}}|{'|'.join(_COUNTS)})"
_UNIT = r"(?P<unit>day|week|month|year)"
_PAST = r"(?:last|past|previous)"


def relative_spans(text: str, asked_at: datetime) -> tuple[list[Span], str]:
    """The spans of time that a text names relative to the time of asking, and the text without those phrases.

    Args:
        text: a question.
        asked_at: the time of asking, timezone-aware; days begin at midnight UTC.
    """
    midnight = asked_at.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return read(text, _FORMS, Asked(midnight, ()))


def _weekday(found: re.Match[str], midnight: datetime) -> Span:
    """The last such weekday before today; with `this`, today counts too."""
    weekday = _DAYS.index(found["day"].lower())
    return weekday_span(midnight, weekday, today=(found["which"] or "").lower() == "this")


def _counted(found: re.Match[str]) -> int:
    count = found["count"].lower()
    return int(count) if count.isdigit() else _COUNTS[count]


def _running(found: re.Match[str], midnight: datetime) -> Span:
    """The last `count` units up to the end of today."""
    return Span(_unit_before(found["unit"].lower(), midnight, _counted(found)), midnight + timedelta(days=1))


def _unit_before(unit: str, midnight: datetime, count: int) -> datetime:
    return midnight - timedelta(days=count * {"day": 1, "week": 7, "month": 30.4375, "year": 365.25}[unit])


_FORMS: list[Form] = [
    (re.compile(form, re.IGNORECASE), relative(span))
    for form, span in (
        (r"\b(?:the )?day before yesterday\b", lambda _, now: day_span(now, 2)),
        (r"\b(?:yesterday|last night)\b", lambda _, now: day_span(now, 1)),
        (r"\b(?:today|tonight|this (?:morning|afternoon|evening))\b", lambda _, now: day_span(now, 0)),
        (
            rf"\b{_COUNT} (?:of )?{_UNIT}s? (?:ago|back|earlier)\b",
            lambda found, now: unit_span(found["unit"].lower(), now, _counted(found)),
        ),
        (rf"\b{_PAST} {_COUNT} {_UNIT}s?\b", _running),
        (rf"\b{_PAST} {_UNIT}\b", lambda found, now: unit_span(found["unit"].lower(), now, 1)),
        (r"\bthis (?P<unit>week|month|year)\b", lambda found, now: unit_span(found["unit"].lower(), now, 0)),
        (rf"\b(?P<which>last|past|previous|this|on) (?P<day>{'|'.join(_DAYS)})\b", _weekday),
    )
]
"""Each pattern with its parser, in order of precedence; no part of a text is matched twice."""
