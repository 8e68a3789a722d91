"""Dates, times and zones in the texts of values."""

from __future__ import annotations

from datetime import date

import polars as pl
import pytest

from memstate_core.revise.matching.typed_dates import clock, day, zone

TENTH = date(2026, 3, 10)
WRITTEN = [
    ("2026-03-10", TENTH, None, None),
    ("2026-03-10T00:00:00", TENTH, None, None),  # midnight, which many write for a date alone
    ("2026-03-10T16:00Z", TENTH, 960, 0),
    ("2026-03-10T16:00:00.123456+01:00", TENTH, 960, 60),
    ("2026-03-10 16:00 UTC", TENTH, 960, 0),
    ("2026/3/10 16:00", TENTH, 960, None),
    ("10 March 2026", TENTH, None, None),
    ("10-Mar-2026", TENTH, None, None),
    ("Tue, 10 Mar 2026 11:00:00 -0530", TENTH, 660, -330),
    ("Tue Mar 10 11:00:00 2026", TENTH, 660, None),
    ("Mar 10, 2026 at 5pm", TENTH, 1020, None),
    ("12:30 p.m., 10 March 2026 PDT", TENTH, 750, -420),
    ("Mar 10 2026 12:15 AM EST", TENTH, 15, -300),
    ("March 2026", None, None, None),
    ("May 12 2003 1200 people", None, None, None),
    ("2026-02-31", None, None, None),
]


@pytest.mark.parametrize(("text", "on", "minutes", "ahead"), WRITTEN)
def test_a_date_is_read_as_it_is_written(text: str, on: date | None, minutes: int | None, ahead: int | None) -> None:
    row = pl.DataFrame({"text": [text]}).select(
        day=day(pl.col("text")).cast(pl.Int32).cast(pl.Date), clock=clock(pl.col("text")), zone=zone(pl.col("text"))
    )
    assert row.row(0) == (on, minutes, ahead)
