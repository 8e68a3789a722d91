"""How well topics are retained under a curve, from their events alone.

A curve (h, g) retains a topic with events at t_0 <= t_1 <= ... (days), d_i = t_i - t_(i-1), in the form

    x_i = x_(i-1) + d_i / (d_i + h)      m_i = min(1000, (1 + x_i)^g)      S_i = 1 + S_(i-1) 2^(-d_i / (h m_(i-1)))

with x_0 = 0 and S_0 = 1. At a time t after the last event T its retention is log2 S - (t - T) / (h m). A short h
with g = 0 orders by recency, a long h by frequency (LRFU; Lee et al., IEEE ToC 50(12), 2001), and g says how
much events spread over time slow the decay (the spacing effect; Cepeda et al., Psychological Bulletin 132(3),
2006). Retention only ranks topics; salience and its thresholds are in `memstate_core.state.fold.strength`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

MOST_GROWTH = 1000.0
"""The most by which a half-life can grow, as a multiple of its first value."""


@dataclass(frozen=True)
class Curve:
    """How retention decays: the half-life after a first event in days, and the exponent of its growth."""

    half_life_days: float
    growth: float


@dataclass(frozen=True)
class Events:
    """Events by topic and time, in groups of one topic between two boundaries; E events, G groups.

    Attributes:
        gap: days since the event before of the same topic, 0 for its first (E,).
        opening: row of the first event of the same topic (E,).
        group: number of the group (E,).
        begins, ends: first and last row of each group (G,).
        topic: of each group (G,).
        night: how many boundaries lie before or at each group (G,).
        last: time of each group's last event (G,).
        later: the groups that are their topic's second, those that are its third, and so on.
    """

    gap: Floats
    opening: Ints
    group: Ints
    begins: Ints
    ends: Ints
    topic: Ints
    night: Ints
    last: Floats
    later: list[Ints]


def group_events(topics: Ints, times: Floats, boundaries: Floats) -> Events:
    """Sorts and groups events.

    Args:
        topics: of each event, 0 or more (n,).
        times: of each event in days (n,); in any order.
        boundaries: ascending; an event on a boundary belongs to the group after it (b,).
    """
    order = np.lexsort((times, topics))
    topic, time = topics[order], times[order]
    night = np.searchsorted(boundaries, time, side="right")
    first = np.diff(topic, prepend=-1) != 0
    opens = first | (np.diff(night, prepend=-1) != 0)
    begins = np.flatnonzero(opens)
    ends = np.append(begins, len(topic))[1:] - 1
    return Events(
        gap=np.where(first, 0.0, np.diff(time, prepend=0.0)),
        opening=np.flatnonzero(first)[np.cumsum(first) - 1],
        group=np.cumsum(opens) - 1,
        begins=begins,
        ends=ends,
        topic=topic[begins],
        night=night[begins],
        last=time[ends],
        later=_later(first[begins]),
    )


def strengths(events: Events, curve: Curve) -> tuple[Floats, Floats]:
    """log2 S and h m after the last event of each group, both (G,).

    In the time u = sum of d_i / (h m_(i-1)) strength halves with each unit: a group contributes the sum of
    2^(u - u_end), and earlier strength is carried over, one group of every topic at a time.
    """
    x = np.cumsum(events.gap / (events.gap + curve.half_life_days))
    x -= x[events.opening]
    half_life = curve.half_life_days * np.minimum(MOST_GROWTH, (1 + x) ** curve.growth)
    u = np.cumsum(events.gap / np.roll(half_life, 1))
    u_end = u[events.ends]
    strength = np.add.reduceat(np.exp2(u - u_end[events.group]), events.begins) if len(u) else u
    for rows in events.later:
        strength[rows] += strength[rows - 1] * np.exp2(u_end[rows - 1] - u_end[rows])
    return np.log2(strength), half_life[events.ends]


def retention(topics: Ints, times: Floats, now: float, curve: Curve, count: int) -> Floats:
    """Retention, by which topics are ranked; those with the lowest are archived first.

    Args:
        topics: of each event, in 0 .. count - 1 (n,).
        times: of each event in days (n,); in any order.
        now: the time to rank at, in the same days; an event may be dated a little after it.
        curve: how retention decays.
        count: how many topics there are.

    Returns:
        Retention in halvings, minus infinity for topics without events (count,).
    """
    events = group_events(topics, times, np.empty(0))
    strength, half_life = strengths(events, curve)
    ranks = np.full(count, -np.inf)
    ranks[events.topic] = strength - (now - events.last) / half_life
    return ranks


def _later(first: NDArray[np.bool_]) -> list[Ints]:
    """The groups that are their topic's second, third, ..., where `first` marks those that are its first (G,)."""
    if not len(first):
        return []
    ordinal = np.arange(len(first)) - np.flatnonzero(first)[np.cumsum(first) - 1]
    return np.split(np.argsort(ordinal, kind="stable"), np.cumsum(np.bincount(ordinal)))[1:-1]
