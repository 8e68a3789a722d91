"""Dates, times and zones in the texts of values."""

from __future__ import annotations

from datetime import date, timedelta

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memstate_core.revise.matching.texts.typed_dates import clock, day, other_time, times, zone

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
    ("10.03.26", TENTH, None, None),
    ("10. 3. 2026", TENTH, None, None),
    ("Di., 10.03.2026 16.30 Uhr", TENTH, 990, None),
    ("10. m\u00e4rz 2026", TENTH, None, None),
    ("10 marzo 2026, 5 pm", TENTH, 1020, None),
    ("10 \u043c\u0430\u0440\u0442\u0430 2026", TENTH, None, None),
    ("2026\ub144 3\uc6d4 10\uc77c", TENTH, None, None),
    ("03/31/2026", date(2026, 3, 31), None, None),
    ("31-03-26", date(2026, 3, 31), None, None),
    ("03/03/2026", date(2026, 3, 3), None, None),
    ("03/10/2026", None, None, None),  # of October or of March
    ("14/13/2026", None, None, None),
    ("Marathon 10 2026", None, None, None),
    ("set 3 out of 20", None, None, None),
]


@pytest.mark.parametrize(("text", "on", "minutes", "ahead"), WRITTEN)
def test_a_date_is_read_as_it_is_written(text: str, on: date | None, minutes: int | None, ahead: int | None) -> None:
    row = pl.DataFrame({"text": [text]}).select(
        day=day(pl.col("text")).cast(pl.Int32).cast(pl.Date), clock=clock(pl.col("text")), zone=zone(pl.col("text"))
    )
    assert row.row(0) == (on, minutes, ahead)


MONTHS = {
    "en": "January February March April May June July August September October November December",
    "de": "Januar Februar M\u00e4rz April Mai Juni Juli August September Oktober November Dezember",
    "es": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "nl": "januari februari maart april mei juni juli augustus september oktober november december",
}
FORMATS = ("%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%d.%m.%y", "%m/%d/%Y", "%d/%m/%Y", "%d-%m-%Y")


def ways(on: date) -> list[str]:
    """A date in all ways of writing it."""
    named = [f"{on.day}. {names.split()[on.month - 1]} {on.year}" for names in MONTHS.values()]
    return [*(on.strftime(form) for form in FORMATS), *named]


@pytest.mark.slow
@given(st.dates(date(1970, 1, 1), date(2069, 12, 31)), st.integers(1, 400))
@settings(max_examples=60)
def test_a_day_is_the_same_in_all_ways_and_another_in_none(on: date, later: int) -> None:
    """But for texts such as 03/10/2026: nothing says whether two of them have the month in the same place."""
    for other, expected in ((on, False), (on + timedelta(days=later), True)):
        both = pl.DataFrame({"text": ways(on)}).join(pl.DataFrame({"text_b": ways(other)}), how="cross")
        read = both.with_columns(*times(pl.col("text")), *(each.name.suffix("_b") for each in times(pl.col("text_b"))))
        one, another = (~pl.col(f"month_first{side}").eq(pl.col(f"day_first{side}")) for side in ("", "_b"))
        certain = read.filter(~one & ~another).select(other_time()).to_series()
        assert set(certain) == {expected}
        unsure = read.filter(one ^ another).select(other_time()).to_series()
        assert expected or not unsure.any()
        if expected and (other.month, other.day) not in ((on.day, on.month), (on.month, on.day)):
            assert unsure.all()
