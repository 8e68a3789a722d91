"""The eviction order: retention equals a plain loop, and the fitted curve is the best one of a plain replay."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from memstate_core.forget import eviction_fit as module
from memstate_core.forget.eviction_fit import Curve, candidates, choose, fit_curve, halvings, replay, retention, sampled

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
DEFAULT = Curve(90.0, 1.0)
curves = st.builds(Curve, st.sampled_from([1 / 256, 0.25, 1.0, 90.0, 1000.0]), st.sampled_from([0.0, 0.5, 1.0, 4.0]))
seeds = st.integers(0, 2**32 - 1)


def events(seed: int, topics: int, count: int, days: float) -> tuple[Ints, Floats]:
    """Events at moments that no two share, so that ranks never tie."""
    rng = np.random.default_rng(seed)
    return rng.integers(topics, size=count), rng.random(count) * days


def by_a_plain_loop(times: list[float], now: float, curve: Curve) -> float:
    h, growth = curve.half_life_days, curve.growth
    strength, x, half_life, last = 1.0, 0.0, h, min(times)
    for at in sorted(times)[1:]:
        gap = at - last
        strength = 1 + strength * 2 ** (-gap / half_life)
        x += gap / (gap + h)
        half_life, last = h * min(1000.0, (1 + x) ** growth), at
    return math.log2(strength) - (now - last) / half_life


def plain_ranks(topics: Ints, times: Floats, now: float, curve: Curve) -> dict[int, float]:
    known = sorted(set(topics[times < now].tolist()))
    return {t: by_a_plain_loop(times[(topics == t) & (times < now)].tolist(), now, curve) for t in known}


def plain_hits(topics: Ints, times: Floats, asked: NDArray[np.bool_], day: float, curve: Curve, capacity: int) -> int:
    ranks = plain_ranks(topics, times, day, curve)
    active = sorted(ranks, key=lambda topic: -ranks[topic])[:capacity]
    return sum(topic in active for topic in topics[asked & (np.floor(times) == day)].tolist())


@given(seeds, st.integers(1, 60), curves)
def test_retention_is_the_loop(seed: int, count: int, curve: Curve) -> None:
    topics, times = events(seed, 5, count, 40.0)
    ranks = retention(topics, times, 41.0, curve, 7)
    expected = plain_ranks(topics, times, 41.0, curve)
    assert [t for t in range(7) if ranks[t] > -np.inf] == list(expected)
    assert ranks[list(expected)].tolist() == pytest.approx(list(expected.values()), rel=1e-9, abs=1e-9)


@given(seeds, st.integers(0, 80), curves, st.integers(1, 8))
def test_a_replay_is_a_plain_simulation(seed: int, count: int, curve: Curve, capacity: int) -> None:
    topics, times = events(seed, 6, count, 9.0)
    asked = np.random.default_rng(seed).random(count) < 0.7
    days = np.unique(np.floor(times[asked]))
    hits, requests = replay(topics, times, asked, days, [curve, DEFAULT], capacity)
    for row, one in enumerate([curve, DEFAULT]):
        plain = [plain_hits(topics, times, asked, day, one, capacity) for day in days.tolist()]
        assert hits[row].tolist() == pytest.approx(plain)
    assert requests.tolist() == [np.count_nonzero(np.floor(times[asked]) == day) for day in days]


def test_topics_that_tie_at_the_bound_count_by_their_share() -> None:
    topics, times = np.array([0, 1, 2, 0, 1, 1]), np.array([0.5, 0.5, 0.5, 1.2, 1.3, 1.4])
    hits, _ = replay(topics, times, np.ones(6, bool), np.array([1.0]), [DEFAULT], 2)
    assert hits.tolist() == [[3 * 2 / 3]]


@pytest.mark.slow
@given(seeds)
def test_neither_the_order_of_rows_nor_the_moment_within_a_day_matters(seed: int) -> None:
    topics, times = events(seed, 30, 400, 12.0)
    order = np.random.default_rng(seed).permutation(400)
    fits = [
        fit_curve(topics, times, 6, 13.0, 90.0),
        fit_curve(topics[order], times[order], 6, 13.0, 90.0),
        fit_curve(topics, times, 6, 13.9, 90.0),
    ]
    assert fits[0] == fits[1] == fits[2]
    assert fits[0].requests == 400


@given(seeds, st.integers(1, 12))
def test_what_comes_after_now_does_not_matter(seed: int, now: int) -> None:
    topics, times = events(seed, 30, 600, 20.0)
    past = times < now
    assert fit_curve(topics, times, 6, now, 90.0) == fit_curve(topics[past], times[past], 6, now, 90.0)


def test_little_evidence_leaves_the_default() -> None:
    nothing = fit_curve(np.empty(0, np.int64), np.empty(0), 10, 5.0, 30.0)
    assert (nothing.curve, nothing.requests, nothing.days, nothing.share) == (Curve(30.0, 1.0), 0, 0, 1.0)
    topics, times = recency(99, days=10)
    assert fit_curve(topics, times, 3, 10.0, 30.0).curve == Curve(30.0, 1.0)


def test_curves_that_answer_alike_leave_the_default() -> None:
    topics, times = events(3, 20, 2000, 20.0)
    assert fit_curve(topics, times, 20, 21.0, 90.0).curve == DEFAULT


def recency(count: int, days: int) -> tuple[Ints, Floats]:
    """Ten topics at a time, which move on by five each half day."""
    rng, at = np.random.default_rng(5), np.arange(count) * days / count
    return (at * 10).astype(np.int64) // 5 * 5 + rng.integers(10, size=count), at


def frequency(count: int, days: int) -> tuple[Ints, Floats]:
    """Forty of 4,000 topics take two fifths of the requests, on all days alike."""
    rng = np.random.default_rng(6)
    popular = rng.integers(40, size=count)
    return np.where(rng.random(count) < 0.4, popular, rng.integers(40, 4000, size=count)), np.arange(
        count
    ) * days / count


def test_recency_alone_chooses_a_short_curve() -> None:
    fit = fit_curve(*recency(4000, days=20), 10, 20.0, 90.0)
    assert fit.curve.half_life_days * (fit.curve.growth + 1) <= 1
    assert fit.hits > fit.default_hits + 500


def test_frequency_alone_chooses_a_long_curve() -> None:
    topics, times = frequency(8000, days=20)
    for half_life in (90.0, 1 / 256):
        curve = fit_curve(topics, times, 40, 20.0, half_life).curve
        assert curve.half_life_days >= 4


def test_events_that_are_no_requests_strengthen_but_are_no_hits() -> None:
    topics, times = recency(4000, days=20)
    request = np.arange(4000) % 2 == 0
    fit = fit_curve(topics, times, 10, 20.0, 90.0, request)
    assert fit.requests == 2000
    assert fit.curve != DEFAULT
    assert fit_curve(topics, times, 10, 20.0, 90.0, np.zeros(4000, bool)).curve == DEFAULT


def test_only_the_last_days_with_requests_are_replayed() -> None:
    topics, times = events(1, 50, 5000, 100.0)
    sparse = times + np.floor(times) * 6
    assert fit_curve(topics, sparse, 10, 800.0, 90.0).days == module.DAYS
    assert fit_curve(topics, times, 10, 5.5, 90.0).days == 5


def test_a_sample_is_part_of_every_larger_one_and_answers_like_all() -> None:
    names = np.arange(100_000)
    kept = [sampled(names, times) for times in range(5)]
    assert kept[0].all()
    assert all((kept[i] | ~kept[i + 1]).all() for i in range(4))
    assert kept[3].mean() == pytest.approx(1 / 8, rel=0.05)
    assert [halvings(np.arange(n)) for n in (0, 20_000, 20_001, 80_001)] == [0, 0, 1, 3]


def test_a_large_scope_is_replayed_in_miniature(monkeypatch: pytest.MonkeyPatch) -> None:
    topics, times = recency(40_000, days=20)
    topics = topics * 7 + np.random.default_rng(1).integers(7, size=40_000)
    whole = fit_curve(topics, times, 70, 20.0, 90.0)
    monkeypatch.setattr(module, "REPLAYED_TOPICS", 200)
    small = fit_curve(topics, times, 70, 20.0, 90.0)
    assert (whole.share, small.share) == (1.0, 1 / 8)
    assert small.requests < whole.requests / 4
    assert abs(small.hits / small.requests - whole.hits / whole.requests) < 0.1
    assert small.curve.half_life_days <= 1


def test_noise_is_no_evidence_and_a_steady_gain_is() -> None:
    requests = np.full(10, 100)
    default = np.full(10, 50.0)
    assert choose(np.array([default, default + np.tile([20, -19], 5)]), requests) == 0
    assert choose(np.array([default, default + 4, default + np.tile([20, -19], 5)]), requests) == 1
    assert choose(np.array([default[:1], default[:1] + 5]), requests[:1]) == 0
    assert choose(np.array([default[:1], default[:1] + 30]), requests[:1]) == 1
    assert choose(np.array([default, default + 30]), np.full(10, 9)) == 0


def test_the_default_comes_first_and_once() -> None:
    found = candidates(90.0)
    assert found[0] == DEFAULT
    assert len(set(found)) == len(found)
    assert candidates(30.0)[0] == Curve(30.0, 1.0)
    assert set(candidates(30.0)[1:]) == set(found)
