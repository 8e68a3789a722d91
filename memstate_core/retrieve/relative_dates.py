"""Dates relative to the moment at which a question is asked: yesterday, last Tuesday, three weeks ago.

English only; ISO dates, which `memstate_core.retrieve.dates` parses, work in any language. A week begins on Monday.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

from memstate_core.retrieve.dates import Span

_DAYS = [name.lower() for name in calendar.day_name]
_COUNTS = {
    word: number
    for number, words in enumerate(("", "a an one", "two couple", "three", "four", "five", "six", "seven", "eight"))
    for word in words.split()
} | {"nine": 9, "ten": 10, "eleven": 11, "twelve": 12}
_COUNT = rf"(?P<count>\d{{1,4}}|{'|'.join(_COUNTS)})"
_UNIT = r"(?P<unit>day|week|month|year)"
_PAST = r"(?:last|past|previous)"

Read = Callable[[re.Match[str], datetime], Span]


def relative_spans(text: str, asked_at: datetime) -> tuple[list[Span], str]:
    """The spans of time that a text names relative to the time of asking, and the text without those phrases.

    Args:
        text: a question.
        asked_at: the time of asking, timezone-aware; days begin at midnight UTC.
    """
    midnight = asked_at.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return list(_read(text, midnight)), _without(text)


def _read(text: str, midnight: datetime) -> Iterator[Span]:
    for form, read in _FORMS:
        for found in form.finditer(text):
            try:
                yield read(found, midnight)
            except (ValueError, OverflowError):  # before the year 1
                continue
        text = form.sub(" ", text)


def _without(text: str) -> str:
    for form, _ in _FORMS:
        text = form.sub(" ", text)
    return text


def _day(midnight: datetime, ago: int) -> Span:
    start = midnight - timedelta(days=ago)
    return Span(start, start + timedelta(days=1))


def _weekday(found: re.Match[str], midnight: datetime) -> Span:
    """The last such weekday before today; with `this`, today counts too."""
    ago = (midnight.weekday() - _DAYS.index(found["day"].lower())) % 7
    return _day(midnight, ago if ago or (found["which"] or "").lower() == "this" else 7)


def _unit(unit: str, midnight: datetime, ago: int) -> Span:
    """The calendar day, week, month or year that is `ago` units back."""
    if unit == "day":
        return _day(midnight, ago)
    if unit == "week":
        start = midnight - timedelta(days=midnight.weekday() + 7 * ago)
        return Span(start, start + timedelta(days=7))
    if unit == "year":
        return Span(_month(midnight.year - ago, 0), _month(midnight.year - ago + 1, 0))
    months = 12 * midnight.year + midnight.month - 1 - ago
    return Span(_month(0, months), _month(0, months + 1))


def _month(year: int, months: int) -> datetime:
    return datetime(year + months // 12, months % 12 + 1, 1, tzinfo=UTC)


def _counted(found: re.Match[str]) -> int:
    count = found["count"].lower()
    return int(count) if count.isdigit() else _COUNTS[count]


def _running(found: re.Match[str], midnight: datetime) -> Span:
    """The last `count` units up to the end of today."""
    return Span(_unit_before(found["unit"].lower(), midnight, _counted(found)), midnight + timedelta(days=1))


def _unit_before(unit: str, midnight: datetime, count: int) -> datetime:
    return midnight - timedelta(days=count * {"day": 1, "week": 7, "month": 30.4375, "year": 365.25}[unit])


_FORMS: list[tuple[re.Pattern[str], Read]] = [
    (re.compile(form, re.IGNORECASE), read)
    for form, read in (
        (r"\b(?:the )?day before yesterday\b", lambda _, now: _day(now, 2)),
        (r"\b(?:yesterday|last night)\b", lambda _, now: _day(now, 1)),
        (r"\b(?:today|tonight|this (?:morning|afternoon|evening))\b", lambda _, now: _day(now, 0)),
        (
            rf"\b{_COUNT} (?:of )?{_UNIT}s? (?:ago|back|earlier)\b",
            lambda found, now: _unit(found["unit"].lower(), now, _counted(found)),
        ),
        (rf"\b{_PAST} {_COUNT} {_UNIT}s?\b", _running),
        (rf"\b{_PAST} {_UNIT}\b", lambda found, now: _unit(found["unit"].lower(), now, 1)),
        (r"\bthis (?P<unit>week|month|year)\b", lambda found, now: _unit(found["unit"].lower(), now, 0)),
        (rf"\b(?P<which>last|past|previous|this|on) (?P<day>{'|'.join(_DAYS)})\b", _weekday),
    )
]
"""Each pattern with its parser, in order of precedence; no part of a text is matched twice."""
