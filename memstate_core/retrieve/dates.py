"""Dates in a question, as time spans: ISO dates and years in any language, names of months in English only.

Dates relative to the moment of asking ("last week") are parsed in `memstate_core.retrieve.relative_dates`, English only
too. In another language a question is ranked by its words and meaning alone unless it names an ISO date or a year.

A date without a year means that day or month in every year that the evidence covers.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
import numpy.typing as npt
import polars as pl

FADE_DAYS = 7.0
"""The decay of nearness around a named date: 1/e after this many days."""

_NAMES = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
]
_MONTHS = {form: number for number, name in enumerate(_NAMES, 1) for form in (name, name[:3])} | {"sept": 9}
_MONTH = rf"(?P<month>{'|'.join(sorted(_MONTHS, key=len, reverse=True))})\.?"
_DAY = r"(?P<day>[0-3]?\d)(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>(?:19|20)\d\d)"
_FORMS = [
    re.compile(form, re.IGNORECASE)
    for form in (
        rf"\b{_YEAR}-(?P<month>[01]\d)(?:-(?P<day>[0-3]\d))?\b",
        rf"\b{_DAY}\s+(?:of\s+)?{_MONTH},?(?:\s+(?:of\s+)?{_YEAR})?\b",
        rf"\b{_MONTH}\s+{_DAY}(?:,?\s+{_YEAR})?\b",
        rf"\b{_MONTH},?\s+(?:of\s+)?{_YEAR}\b",
        rf"\b(?:in|since|during|until|by|before|after|of|last|this|next)\s+{_MONTH}(?!\w)",
        rf"\b{_YEAR}\b",
    )
]


@dataclass(frozen=True)
class Span:
    """A half-open span of time: `end` is excluded."""

    start: datetime
    end: datetime


def named_spans(text: str, years: Sequence[int]) -> list[Span]:
    """The spans of time that a text names; every part of the text is matched once.

    Args:
        text: a question.
        years: the candidate years of a date without one.
    """
    spans: list[Span] = []
    for form in _FORMS:
        for found in form.finditer(text):
            spans += _spans(found.groupdict(), years)
        text = form.sub(" ", text)
    return spans


def _spans(found: dict[str, str | None], years: Sequence[int]) -> Iterator[Span]:
    month, day = found.get("month"), found.get("day")
    year_given = found.get("year")
    for year in [int(year_given)] if year_given else years:
        if month is None:
            yield Span(datetime(year, 1, 1, tzinfo=UTC), datetime(year + 1, 1, 1, tzinfo=UTC))
            continue
        number = int(month) if month.isdigit() else _MONTHS[month.lower()]
        if not 1 <= number <= 12:
            continue
        last = calendar.monthrange(year, number)[1]
        first, final = (int(day), int(day)) if day and 1 <= int(day) <= last else (1, last)
        end = datetime(year, number, final, tzinfo=UTC) + timedelta(days=1)
        yield Span(datetime(year, number, first, tzinfo=UTC), end)


def nearness(moments: pl.Series, spans: Sequence[Span]) -> npt.NDArray[np.float64]:
    """The nearness of each moment to the nearest span: 1 inside, divided by e every `FADE_DAYS` outside."""
    best = np.zeros(len(moments))
    if not spans:
        return best
    seconds = moments.dt.epoch("s").cast(pl.Float64).fill_null(float("-inf")).to_numpy()
    for span in spans:
        gap = np.maximum(np.maximum(span.start.timestamp() - seconds, seconds - span.end.timestamp()), 0.0)
        best = np.maximum(best, np.exp(-gap / (FADE_DAYS * 86_400)))
    return best
