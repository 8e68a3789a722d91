"""Dates in a question, as time spans: ISO dates and years in any language, names of months in English.

Dates relative to the moment of asking ("last week") are parsed in `relative_dates`, and those of other languages in
`local_dates`.

A date without a year means that day or month in every year that the evidence covers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from memstate_core.retrieve.question.date_forms import Span, calendar_spans

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
    year, month, day = found.get("year"), found.get("month"), found.get("day")
    number = None if month is None else int(month) if month.isdigit() else _MONTHS[month.lower()]
    return calendar_spans(int(year) if year else None, number, int(day) if day else None, years)


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
