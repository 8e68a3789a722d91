"""The active set by memstate's own order, on traces of requests: a day is so many requests.

By night the product's functions decide: `choose` selects a curve by the results of `replay` for earlier nights, on the
sample that `fit_curve` would take, and `retention` ranks by that curve. The product has no decisions by request; there
the same curves are replayed with a decision at each request, on a hashed sample of keys, `choose` selects one each
night, and a topic enters if its retention is not below the lowest of the active ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from replacement import Bools, Ints, best

from memstate_core.forget.eviction_fit import DAYS, candidates, choose, halvings, replay, sampled
from memstate_core.forget.retention_curves import Curve, Events, Floats, group_events, retention, strengths

REPLAYED_CAPACITY = 128
"""The least capacity of a replay by request, if the trace's is as large."""
Lines = tuple[Floats, Floats]
"""After each request, its topic's retention at 0 and how much of it fades each day, both (n,)."""


class Ours:
    """Memstate's order on one trace.

    Args:
        trace: keys (n,).
        night: how many requests a day has.
        half_life_days: of the default curve.
    """

    def __init__(self, trace: Ints, night: int, half_life_days: float) -> None:
        self.trace, self.night = trace, night
        self.days = np.arange(len(trace)) / night
        self.count = int(trace.max(initial=-1)) + 1
        self.curves = candidates(half_life_days)
        self.lines = lru_cache(maxsize=8)(self._lines)
        self.events = lru_cache(maxsize=1)(self._events)

    # --- by night

    def nights(self, capacity: int, chosen: Ints) -> Iterator[Ints]:
        """The active keys after each night under the curves chosen for them."""
        for day, begin in enumerate(range(self.night, len(self.trace), self.night), 1):
            curve = self.curves[chosen[day]]
            yield best(retention(self.trace[:begin], self.days[:begin], day, curve, self.count), capacity)

    def chosen_nightly(self, capacity: int) -> Ints:
        """The curve of each day, chosen from the days before it (days,)."""
        halved = [halvings(self.trace[:begin]) for begin in range(0, len(self.trace), self.night)]
        replayed = {times: self._replayed(capacity, times) for times in sorted(set(halved))}
        return np.array([self._choice(*replayed[times], day) for day, times in enumerate(halved)])

    def _replayed(self, capacity: int, halved: int) -> tuple[Floats, Ints]:
        """The replay of `fit_curve`, for all days at once; a day's hits depend on earlier days only."""
        kept = sampled(self.trace, halved)
        begins = np.arange(0, len(self.trace), self.night) / self.night
        part, times = self.trace[kept], self.days[kept]
        return replay(part, times, np.ones(len(part), bool), begins, self.curves, max(1, round(capacity / 2**halved)))

    def _choice(self, hits: Floats, requests: Ints, day: int) -> int:
        past = slice(max(0, day - DAYS), day)
        return choose(hits[:, past], requests[past])

    # --- by request

    def request_hits(self, capacity: int, chosen: Ints) -> Bools:
        """Hits with a decision at each request, under the curves chosen for the days."""
        cache = _Bounded(capacity)
        hits = np.zeros(len(self.trace), bool)
        for day, begin in enumerate(range(0, len(self.trace), self.night)):
            rows = np.arange(begin, min(begin + self.night, len(self.trace)))
            lines = self.lines(self.curves[chosen[day]])
            cache.renew(*lines)
            hits[rows] = cache.ask(self.trace[rows], self.days[rows], rows, *lines)
        return hits

    def chosen_by_request(self, capacity: int) -> Ints:
        """The curve of each day, chosen by replays with a decision at each request (days,)."""
        halved = max(0, int(np.log2(capacity / REPLAYED_CAPACITY))) if capacity else 0
        rows = np.flatnonzero(sampled(self.trace, halved))
        days = len(range(0, len(self.trace), self.night))
        requests = np.bincount(rows // self.night, minlength=days)
        hits = np.zeros((len(self.curves), days))
        for number, curve in enumerate(self.curves):
            cache = _Bounded(max(1, round(capacity / 2**halved)))
            found = cache.ask(self.trace[rows], self.days[rows], np.arange(len(rows)), *self._lines(curve, halved))
            hits[number] = np.bincount(rows // self.night, weights=found, minlength=days)
        return np.array([self._choice(hits, requests, day) for day in range(days)])

    def _events(self, halved: int) -> Events:
        """Each request for a sample of the keys in a group of its own."""
        kept = sampled(self.trace, halved)
        return group_events(self.trace[kept], self.days[kept], self.days[kept])

    def _lines(self, curve: Curve, halved: int = 0) -> Lines:
        """Of each request for a sample of the keys, in the order of the requests."""
        events = self.events(halved)
        strength, half_life = strengths(events, curve)
        order = events.night - 1
        start, slope = np.empty(len(order)), np.empty(len(order))
        start[order], slope[order] = strength + events.last / half_life, 1 / half_life
        return start, slope


class _Bounded:
    """A bounded set of keys; the one with the lowest line is evicted for one whose line is not lower."""

    def __init__(self, capacity: int) -> None:
        self.place: dict[int, int] = {}
        self.keys, self.rows = [-1] * capacity, [-1] * capacity
        self.start, self.slope = np.full(capacity, -np.inf), np.zeros(capacity)

    def ask(self, keys: Ints, days: Floats, rows: Ints, start: Floats, slope: Floats) -> Bools:
        """Takes requests, whose lines are at `rows` of `start` and `slope`; which are hits."""
        hits, held = np.zeros(len(keys), bool), np.empty(len(self.start))
        asked = (column.tolist() for column in (keys, days, rows, start[rows], slope[rows]))
        for number, (key, day, row, a, b) in enumerate(zip(*asked, strict=True)):
            at = self.place.get(key, -1)
            hits[number] = at >= 0
            if at < 0:
                np.multiply(self.slope, -day, out=held)
                np.add(held, self.start, out=held)
                at = int(held.argmin())
                if a - b * day < held[at]:
                    continue
                self.place.pop(self.keys[at], None)
                self.keys[at], self.place[key] = key, at
            self.rows[at], self.start[at], self.slope[at] = row, a, b
        return hits

    def renew(self, start: Floats, slope: Floats) -> None:
        """Replaces the lines of the keys held."""
        rows = np.array(self.rows)
        used = rows >= 0
        self.start[used], self.slope[used] = start[rows[used]], slope[rows[used]]
