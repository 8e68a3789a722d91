"""The eviction curve of a scope over its bound: the one that would have answered most requests so far.

No single curve suits every scope, so candidates are compared by replay: for each of the last 32 days with requests, the
active set is what a candidate retained best at the beginning of the day, and its hits are the day's requests for topics
in the set. Days are those of the events, so the result does not depend on when or how often runs took place. Large
scopes are replayed in miniature, on a hashed sample of topics with the bound scaled (Waldspurger et al., USENIX ATC
2017). Archived topics are seldom requested, so the record favours topics that were kept.

The default curve has the policy's half-life and g = 1. Another one needs evidence: with D_w its hits beyond the
default's on day w of n, the curve whose mean D is most above its standard error is chosen, if any is. The variance of D
is the observed one, (1/n) sum (D_w - mean D)^2, plus 1/n of the variance that chance alone gives the hits of both
curves (Poisson), so that a single day can decide, but only by a large difference. The chosen curve determines the
eviction order only; salience and its thresholds do not use it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memstate_core.forget.retention_curves import Curve, Events, Floats, Ints, group_events, retention, strengths

__all__ = ["Curve", "Fit", "candidates", "choose", "fit_curve", "halvings", "replay", "retention", "sampled"]

DAYS = 32
"""How many days with requests are replayed."""
REPLAYED_TOPICS = 20_000
"""Most topics in a replay."""
FEWEST_REQUESTS = 100
"""With fewer requests in the replay the default curve is used."""
HALF_LIVES = (1 / 256, 1 / 64, 1 / 16, 1 / 4, 1.0, 4.0, 16.0, 90.0, 1000.0)
GROWTHS = (0.0, 0.5, 1.0, 2.0, 4.0)
"""Days and exponents of the candidates."""


@dataclass(frozen=True)
class Fit:
    """The chosen curve and the evidence for it.

    Attributes:
        curve: the chosen curve.
        hits: requests of the replay that it would have answered.
        default_hits: the same for the default curve.
        requests: the number of requests in the replay, those of sampled topics.
        days: the number of days.
        share: the share of topics in the replay.
    """

    curve: Curve
    hits: float
    default_hits: float
    requests: int
    days: int
    share: float


def candidates(half_life_days: float) -> list[Curve]:
    """The default curve, then all others."""
    default = Curve(half_life_days, 1.0)
    return [default, *(curve for g in GROWTHS for h in HALF_LIVES if (curve := Curve(h, g)) != default)]


def fit_curve(
    topics: Ints,
    times: Floats,
    capacity: int,
    now: float,
    half_life_days: float,
    request: NDArray[np.bool_] | None = None,
) -> Fit:
    """Chooses the curve that orders a scope's topics.

    Args:
        topics: of each event, numbers from 0 on (n,).
        times: of each event in days since any midnight (n,); in any order.
        capacity: how many topics may be active.
        now: the time of the run, in the same days; its own day does not count.
        half_life_days: of the default curve.
        request: whether an event is a request for its topic (n,); others strengthen the topic only. All by default.
    """
    asked = np.ones(len(topics), bool) if request is None else request
    past = times < math.floor(now)
    halved = halvings(topics[past])
    kept = past & sampled(topics, halved)
    topics, times, asked = topics[kept], times[kept], asked[kept]
    curves, days = candidates(half_life_days), np.unique(np.floor(times[asked]))[-DAYS:]
    hits, requests = replay(topics, times, asked, days, curves, max(1, round(capacity / 2**halved)))
    best = choose(hits, requests)
    total = hits.sum(axis=1)
    return Fit(curves[best], float(total[best]), float(total[0]), int(requests.sum()), len(days), 0.5**halved)


def replay(
    topics: Ints, times: Floats, asked: NDArray[np.bool_], days: Floats, curves: Sequence[Curve], capacity: int
) -> tuple[Floats, Ints]:
    """The requests that each curve would have answered on each day, with its active set at the beginning of the day.

    Topics that tie at the bound count by the share of them that fits.

    Args:
        topics: of each event (n,).
        times: of each event in days (n,).
        asked: which events are requests (n,).
        days: beginnings of the days to replay, ascending (w,).
        curves: to compare (c,).
        capacity: of the active set.

    Returns:
        Hits (c, w) and requests (w,).
    """
    names, topics = np.unique(topics, return_inverse=True)
    events = group_events(topics, times, days)
    latest = _latest(events, len(days), len(names))
    requests = _requests(topics[asked], times[asked], days, len(names))
    hits = np.zeros((len(curves), len(days)))
    if not len(days):
        return hits, requests.sum(axis=1)
    elapsed = days[:, None] - events.last[latest]
    for row, curve in enumerate(curves):
        strength, half_life = strengths(events, curve)
        ranks = np.where(latest < 0, -np.inf, strength[latest] - elapsed / half_life[latest])
        hits[row] = _answered(ranks, requests, capacity)
    return hits, requests.sum(axis=1)


def choose(hits: Floats, requests: Ints) -> int:
    """The index of the curve that the days are evidence for; 0, the default, where the evidence is too weak.

    Args:
        hits: of each curve on each day (c, w), the default's first.
        requests: on each day (w,).
    """
    if requests.sum() < FEWEST_REQUESTS:
        return 0
    days = len(requests)
    gain, chance = hits - hits[0], (hits + hits[0]).mean(axis=1)
    error = np.sqrt((gain.var(axis=1) + chance / days) / days)
    lower_bound = gain.mean(axis=1) - error
    lower_bound[0] = 0.0
    return int(lower_bound.argmax())


def halvings(topics: Ints) -> int:
    """How often the number of distinct topics must be halved until all can be replayed."""
    return max(0, math.ceil(math.log2(max(1, len(np.unique(topics))) / REPLAYED_TOPICS)))


def sampled(topics: Ints, halved: int) -> NDArray[np.bool_]:
    """Which events belong to a hashed sample of the topics, of size 1 / 2^halved (n,).

    The hash is SplitMix64 (Steele et al., OOPSLA 2014), and a smaller sample is part of every larger one.
    """
    mixed = topics.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray((mixed ^ (mixed >> np.uint64(31))) <= np.uint64(2 ** (64 - halved) - 1))


def _latest(events: Events, days: int, topics: int) -> Ints:
    """The last group of each topic before each day, -1 where there is none (days, topics)."""
    latest = np.full((days + 1, topics), -1)
    latest[events.night, events.topic] = np.arange(len(events.begins))
    return np.maximum.accumulate(latest, axis=0)[:days]


def _requests(topics: Ints, times: Floats, days: Floats, count: int) -> Ints:
    """Requests for each topic on each of the days (days, count)."""
    whole = np.floor(times)
    day = np.searchsorted(days, whole)
    known = np.append(days, np.nan)[day] == whole
    cells = np.bincount(day[known] * count + topics[known], minlength=len(days) * count)
    return cells.reshape(len(days), count)


def _answered(ranks: Floats, requests: Ints, capacity: int) -> Floats:
    """Requests for the `capacity` topics of the highest rank, minus infinity being no topic yet (days,)."""
    bound = np.full((len(ranks), 1), -np.inf)
    if capacity < ranks.shape[1]:
        bound = -np.partition(-ranks, capacity - 1, axis=1)[:, capacity - 1 : capacity]
    above, tied = ranks > bound, (ranks == bound) & (ranks > -np.inf)
    share = (capacity - above.sum(axis=1)) / np.maximum(1, tied.sum(axis=1))
    hits: Floats = (requests * above).sum(axis=1) + share * (requests * tied).sum(axis=1)
    return hits
