"""The nights of a simulation, and which events are new to each."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import NamedTuple

import polars as pl

from memstate_core.forget.simulation.event_history import EventHistory

ALWAYS = datetime(9999, 12, 31, tzinfo=UTC)
"""Later than every event."""


class Night(NamedTuple):
    """A night: the events in (since, until] are new to it; `at` is its logical time."""

    at: datetime
    since: datetime
    until: datetime


def past_nights(now: datetime, days: int) -> list[Night]:
    """One night for each of the last days; the last is now."""
    ends = [now - timedelta(days=left) for left in reversed(range(days + 1))]
    return [Night(end, begin, end) for begin, end in pairwise(ends)]


def future_nights(now: datetime, days: int) -> list[Night]:
    """One night for each of the coming days, without new events."""
    return [Night(now + timedelta(days=day), ALWAYS, ALWAYS) for day in range(1, days + 1)]


def has_new_events(history: EventHistory, nights: Sequence[Night]) -> bool:
    """Whether there is any event between the beginning of the first night's day and the last night."""
    whole = Night(nights[-1].at, nights[0].since, nights[-1].until)
    return any(new_events(rows, whole).height for rows in (history.evidence, history.accesses))


def new_events(rows: pl.DataFrame, night: Night) -> pl.DataFrame:
    """The rows (column at) that are new to a night."""
    return rows.filter(pl.col("at").is_between(night.since, night.until, closed="right"))
