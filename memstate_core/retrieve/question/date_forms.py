"""Forms of dates in a text: patterns, and what each of their finds means as spans of time.

A form is a regular expression and a function from a find to spans. Forms have an order of precedence, and no part of a
text is read twice. Nothing here reads the clock: relative dates refer to the given time of asking.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta


@dataclass(frozen=True)
class Span:
    """A half-open span of time: `end` is excluded."""

    start: datetime
    end: datetime


@dataclass(frozen=True)
class Asked:
    """What dates in a question refer to.

    Attributes:
        midnight: the beginning of the day of asking (UTC); None if relative dates are ignored.
        years: the candidate years of a date without one.
    """

    midnight: datetime | None
    years: Sequence[int]


Read = Callable[[re.Match[str], Asked], Iterable[Span]]
Form = tuple[re.Pattern[str], Read]


def read(text: str, forms: Sequence[Form], asked: Asked) -> tuple[list[Span], str]:
    """The spans that a text names, and the text without those phrases.

    Args:
        text: a question.
        forms: the forms, in order of precedence.
        asked: what dates refer to.
    """
    spans: list[Span] = []
    for form, reading in forms:
        for found in form.finditer(text):
            try:
                spans += reading(found, asked)
            except (ValueError, OverflowError):  # before the year 1
                continue
        text = form.sub(" ", text)
    return spans, text


def relative(span: Callable[[re.Match[str], datetime], Span]) -> Read:
    """A reading of phrases that refer to the time of asking."""
    return lambda found, asked: [] if asked.midnight is None else [span(found, asked.midnight)]


def calendar_spans(year: int | None, month: int | None, day: int | None, years: Sequence[int]) -> Iterator[Span]:
    """A year, a month or a day, in every candidate year if none is named."""
    for each in years if year is None else [year]:
        if month is None:
            yield Span(datetime(each, 1, 1, tzinfo=UTC), datetime(each + 1, 1, 1, tzinfo=UTC))
        elif 1 <= month <= 12:
            last = calendar.monthrange(each, month)[1]
            first, final = (day, day) if day and 1 <= day <= last else (1, last)
            end = datetime(each, month, final, tzinfo=UTC) + timedelta(days=1)
            yield Span(datetime(each, month, first, tzinfo=UTC), end)


def day_span(midnight: datetime, ago: int) -> Span:
    """The day that is `ago` days back."""
    start = midnight - timedelta(days=ago)
    return Span(start, start + timedelta(days=1))


def weekday_span(midnight: datetime, weekday: int, *, today: bool) -> Span:
    """The last such weekday (Monday is 0) before today, or today itself where that counts."""
    ago = (midnight.weekday() - weekday) % 7
    return day_span(midnight, ago if ago or today else 7)


def unit_span(unit: str, midnight: datetime, ago: int) -> Span:
    """The calendar day, week, month or year that is `ago` units back; a week begins on Monday."""
    if unit == "day":
        return day_span(midnight, ago)
    if unit == "week":
        start = midnight - timedelta(days=midnight.weekday() + 7 * ago)
        return Span(start, start + timedelta(days=7))
    if unit == "year":
        return Span(_month(midnight.year - ago, 0), _month(midnight.year - ago + 1, 0))
    months = 12 * midnight.year + midnight.month - 1 - ago
    return Span(_month(0, months), _month(0, months + 1))


def _month(year: int, months: int) -> datetime:
    return datetime(year + months // 12, months % 12 + 1, 1, tzinfo=UTC)
