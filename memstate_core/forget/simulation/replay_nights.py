"""The nights of a rehearsal, and what is new to each."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import NamedTuple

import polars as pl

from memstate_core.forget.simulation.event_history import Past

ALWAYS = datetime(9999, 12, 31, tzinfo=UTC)
"""Later than all that was ever said or used."""


class Night(NamedTuple):
    """A night at a time: what came later than `since`, up to `until`, is new to it."""

    at: datetime
    since: datetime
    until: datetime


def past_nights(now: datetime, days: int) -> list[Night]:
    """The nights of the last days, the last of them now."""
    ends = [now - timedelta(days=left) for left in reversed(range(days + 1))]
    return [Night(end, begin, end) for begin, end in pairwise(ends)]


def coming_nights(now: datetime, days: int) -> list[Night]:
    """The nights of the days that follow, to which nothing is new."""
    return [Night(now + timedelta(days=day), ALWAYS, ALWAYS) for day in range(1, days + 1)]


def has_news(past: Past, nights: Sequence[Night]) -> bool:
    """Whether anything was observed or used since the first night's day began, up to the last night."""
    whole = Night(nights[-1].at, nights[0].since, nights[-1].until)
    return any(news(rows, whole).height for rows in (past.evidence, past.used))


def news(rows: pl.DataFrame, night: Night) -> pl.DataFrame:
    """Those of the rows (column at) that are new to a night."""
    return rows.filter(pl.col("at").is_between(night.since, night.until, closed="right"))
