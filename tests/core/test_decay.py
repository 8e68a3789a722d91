"""Salience in closed form is what a plain loop over the days would give, and only time lowers it."""

from __future__ import annotations

import math
from datetime import datetime, timedelta

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstate_core.forget.decay import salience, strength
from memstate_core.policy.settings import Policy
from tests.core.strategies import EPOCH, day

NOW = 400.0
HALF_LIFE = Policy().salience_half_life_days
days = st.integers(0, 400_000).map(lambda thousandths: thousandths / 1000)
histories = st.lists(days, min_size=1, max_size=30)
policies = st.builds(
    Policy,
    field_salience_initial=st.floats(0.01, 10),
    field_salience_max=st.floats(0.1, 10),
    salience_half_life_days=st.floats(0.5, 1000),
)


def reinforced(events: dict[str, list[float]], policy: Policy) -> pl.DataFrame:
    rows = [(name, day(at)) for name, moments in events.items() for at in moments]
    frame = pl.DataFrame(rows, orient="row", schema={"topic_id": pl.String, "at": pl.Datetime("us", "UTC")})
    return strength(frame, ["topic_id"], policy)


def salience_of(events: list[float], now: datetime, policy: Policy) -> float:
    frame = reinforced({"t": events}, policy).select(salience=salience(now, policy))
    return float(frame["salience"].item())


def by_a_plain_loop(events: list[float], now: float, policy: Policy) -> float:
    """Walks from event to event: what is there halves with the time that passed, then the weight is added."""
    level, last = 0.0, min(events)
    for at in sorted(events):
        level = level * 2 ** (-(at - last) / policy.salience_half_life_days) + policy.field_salience_initial
        last = at
    return min(level, policy.field_salience_max) * 2 ** (-max(0.0, now - last) / policy.salience_half_life_days)


@given(histories, policies)
def test_the_closed_form_is_the_loop(events: list[float], policy: Policy) -> None:
    assert salience_of(events, day(NOW), policy) == pytest.approx(by_a_plain_loop(events, NOW, policy), abs=1e-8)


@given(st.dictionaries(st.sampled_from("abc"), histories, min_size=1), policies)
def test_each_topic_has_its_own_strength_at_its_own_last_event(events: dict[str, list[float]], policy: Policy) -> None:
    together = reinforced(events, policy)
    alone = pl.concat([reinforced({name: events[name]}, policy) for name in sorted(events)])
    assert together.equals(alone)
    assert together["reinforced_at"].to_list() == [day(max(events[name])) for name in sorted(events)]


@given(histories, policies, st.randoms(use_true_random=False))
def test_the_order_of_events_does_not_show(events: list[float], policy: Policy, chance: object) -> None:
    shuffled = chance.sample(events, len(events))  # type: ignore[attr-defined]
    assert reinforced({"t": shuffled}, policy).equals(reinforced({"t": events}, policy))


@given(histories, policies, st.lists(st.integers(0, 100_000_000), max_size=6))
def test_splitting_the_elapsed_time_changes_nothing(events: list[float], policy: Policy, seconds: list[int]) -> None:
    """A run every night and one at the end agree: fading is a product over any split of the time."""
    last = day(max(events))
    level = salience_of(events, last, policy)
    now = last
    for step in seconds:
        level *= 2 ** (-step / 86_400 / policy.salience_half_life_days)
        now += timedelta(seconds=step)
    assert salience_of(events, now, policy) == pytest.approx(level, abs=2e-9)


@given(histories, policies, days)
def test_salience_stays_within_its_bounds(events: list[float], policy: Policy, now: float) -> None:
    assert 0 <= salience_of(events, day(now), policy) <= policy.field_salience_max + 1e-9


@given(histories, policies, days)
def test_one_more_event_never_lowers_salience(events: list[float], policy: Policy, extra: float) -> None:
    """Late ones included: an event long ago adds what is left of it."""
    assert salience_of([*events, extra], day(NOW), policy) >= salience_of(events, day(NOW), policy)


def test_an_event_that_lies_ahead_does_not_lower_salience() -> None:
    """Observations may be dated up to ingest.max_future_days ahead of the clock."""
    now, policy = day(10), Policy()
    often = [10.0] * 9
    assert salience_of([*often, 10.0 + 31], now, policy) >= salience_of(often, now, policy)


@given(histories, policies, days, days)
def test_left_alone_it_only_fades(events: list[float], policy: Policy, one: float, other: float) -> None:
    sooner, later = sorted((one, other))
    assert salience_of(events, day(later), policy) <= salience_of(events, day(sooner), policy)


@pytest.mark.parametrize(("elapsed", "left"), [(0, 1), (1, 1 / 2), (2, 1 / 4), (10, 1 / 1024)])
def test_it_halves_each_half_life(elapsed: float, left: float) -> None:
    assert salience_of([0.0], day(elapsed * HALF_LIFE), Policy()) == pytest.approx(left, abs=1e-9)


def test_more_events_at_once_than_the_maximum_holds_are_cut_to_it() -> None:
    assert salience_of([0.0] * 50, EPOCH, Policy()) == 10.0


def test_the_formula_holds_for_a_clock_before_the_last_event_too() -> None:
    assert salience_of([5.0], EPOCH, Policy()) == pytest.approx(2 ** (5 / 90))


def test_without_events_there_is_no_strength() -> None:
    assert reinforced({}, Policy()).is_empty()


def test_a_thousand_years_leave_a_number() -> None:
    left = salience_of([0.0], EPOCH + timedelta(days=365_000), Policy())
    assert left == 0.0
    assert math.isfinite(left)
