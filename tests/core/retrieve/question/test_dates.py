"""Which dates a question names."""

from __future__ import annotations

from datetime import UTC, datetime

import polars as pl
import pytest

from memstate_core.retrieve.question.dates import FADE_DAYS, Span, named_spans, nearness


def days(text, years=(2025, 2026)):
    return [(span.start.strftime("%Y-%m-%d"), (span.end - span.start).days) for span in named_spans(text, years)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("on 2026-03-05?", [("2026-03-05", 1)]),
        ("in 2026-02", [("2026-02-01", 28)]),
        ("on 7 May 2026", [("2026-05-07", 1)]),
        ("on the 3rd of March, 2026", [("2026-03-03", 1)]),
        ("on May 7th, 2026 and in 2025", [("2026-05-07", 1), ("2025-01-01", 365)]),
        ("in Sept. 2026", [("2026-09-01", 30)]),
        ("in May", [("2025-05-01", 31), ("2026-05-01", 31)]),
        ("June 5", [("2025-06-05", 1), ("2026-06-05", 1)]),
        ("during 2026", [("2026-01-01", 365)]),
        ("on 31 February 2026", [("2026-02-01", 28)]),
        ("What may she march for?", []),
        ("Order 20261 of 12-2026x", []),
        ("in 2026-13", []),
    ],
)
def test_named_spans(text, expected):
    assert days(text) == expected


def test_nearness_falls_with_the_distance_from_the_span():
    span = Span(datetime(2026, 5, 1, tzinfo=UTC), datetime(2026, 6, 1, tzinfo=UTC))
    moments = [datetime(2026, 5, 9, tzinfo=UTC), datetime(2026, 6, 1 + int(FADE_DAYS), tzinfo=UTC), None]
    near = nearness(pl.Series(moments, dtype=pl.Datetime("us", "UTC")), [span])
    assert near == pytest.approx([1, 2.718281828**-1, 0])
    assert nearness(pl.Series(moments[:2]), []).tolist() == [0, 0]
