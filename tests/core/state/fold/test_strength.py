"""Salience in closed form equals a plain loop over the events: accesses raise it, time and failures lower it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from memstate_core.policy.settings import Policy
from memstate_core.state.fold.fold import State
from memstate_core.state.fold.strength import salience, strength
from tests.core.strategies import EPOCH, SCOPES, accessed, day, field, folded, observation

pytestmark = pytest.mark.slow

Event = tuple[float, float, bool]
"""Day, weight, whether it failed."""

SCHEMA: dict[str, Any] = {
    "topic_id": pl.String,
    "at": pl.Datetime("us", "UTC"),
    "weight": pl.Float64,
    "failed": pl.Boolean,
}
BUMP = Policy().query_salience_bump
days = st.integers(0, 400_000).map(lambda thousandths: thousandths / 1000)
weights = st.sampled_from((0.1, 0.5, 1.0, 3.0))
accesses = st.tuples(days, weights, st.just(False))
events = st.lists(st.tuples(days, weights, st.booleans()), min_size=1, max_size=20)
used = st.lists(accesses, min_size=1, max_size=20)
half_lives = st.floats(30, 1000)
growths = st.sampled_from((1.0, 1.5, 8.0, 100.0))
later = st.floats(0, 500)
COUNTED_OUT = 1e-9
"""Tolerance for rounding."""


def reinforced(events: dict[str, Sequence[Event]], half_life: float, growth: float = 8.0) -> pl.DataFrame:
    rows = [(name, day(at), *rest) for name, history in events.items() for at, *rest in history]
    frame = pl.DataFrame(rows, orient="row", schema=SCHEMA).with_columns(half_life=pl.lit(half_life))
    return strength(frame, ["topic_id"], Policy(half_life_growth_max=growth))


def one(events: Sequence[Event], half_life: float = 90.0, growth: float = 8.0) -> dict[str, Any]:
    return reinforced({"t": events}, half_life, growth).row(0, named=True)


def level(events: Sequence[Event], now: float, half_life: float, growth: float, most: float = math.inf) -> float:
    """The logarithm of what is left of the strength, distinct however far it has decayed."""
    found = one(events, half_life, growth)
    elapsed = (day(now) - found["reinforced_at"]) / timedelta(days=1)
    return math.log2(min(most, float(found["strength"]))) - float(elapsed) / float(found["half_life_days"])


def salience_of(events: Sequence[Event], now: float, policy: Policy | None = None) -> float:
    policy = policy or Policy()
    found = reinforced({"t": events}, policy.salience_half_life_days, policy.half_life_growth_max)
    return float(found.select(salience(day(now), policy)).item())


def at(*moments: float) -> list[Event]:
    return [(moment, 1.0, False) for moment in moments]


def by_a_plain_loop(events: Sequence[Event], half_life: float, growth: float) -> tuple[float, float, float]:
    """Strength, failed strength and half-life after the last event, walking from one to the next."""

    def bounded(count: float) -> float:
        return 1 + (growth - 1) * count / (count + growth - 1) if growth > 1 else 1.0

    level, blame, spaced, failures, factor, last = 0.0, 0.0, 0.0, 0, 1.0, min(events)[0]
    for moment, weight, failed in sorted(events, key=lambda event: (event[0], event[2])):
        left, gap, last = 2 ** (-(moment - last) / (half_life * factor)), moment - last, moment
        level, blame = level * left, blame * left
        if failed:
            failures, blame = failures + 1, blame + weight
        else:
            spaced, level = spaced + gap / (gap + half_life), level + weight
        factor = bounded(spaced) / bounded(failures)
    return level, blame, half_life * factor


@given(events, half_lives, growths)
def test_the_closed_form_is_the_loop(events: list[Event], half_life: float, growth: float) -> None:
    found = one(events, half_life, growth)
    levels = (found["strength"], found["failed_strength"], found["half_life_days"])
    assert levels == pytest.approx(by_a_plain_loop(events, half_life, growth), rel=1e-6, abs=1e-12)
    assert found["reinforced_at"] == day(max(events)[0])


@given(st.dictionaries(st.sampled_from("abc"), events, min_size=1), half_lives)
def test_each_topic_has_its_own_strength_at_its_own_last_event(
    history: dict[str, list[Event]], half_life: float
) -> None:
    together = reinforced(dict(history), half_life)
    assert together.equals(pl.concat([reinforced({name: history[name]}, half_life) for name in sorted(history)]))


@given(events, half_lives, st.randoms(use_true_random=False))
def test_the_order_of_events_does_not_show(events: list[Event], half_life: float, chance: Any) -> None:
    assert one(chance.sample(events, len(events)), half_life) == one(events, half_life)


# Condition C6: one more access at any time strictly raises


@given(used, accesses, half_lives, growths, later)
def test_one_more_access_raises_salience_at_any_later_time(
    history: list[Event], more: Event, half_life: float, growth: float, wait: float
) -> None:
    """Before the first event, in the middle of the history and after it."""
    now = max([*history, more])[0] + wait
    assert level([*history, more], now, half_life, growth) > level(history, now, half_life, growth)


@given(events, st.lists(accesses, min_size=1, max_size=5), half_lives, growths, later)
def test_more_accesses_never_lead_below_a_threshold_earlier_also_beside_failures(
    history: list[Event], more: list[Event], half_life: float, growth: float, wait: float
) -> None:
    assume(any(not failed for *_, failed in history))
    now = max([*history, *more])[0] + wait
    assert level([*history, *more], now, half_life, growth) >= level(history, now, half_life, growth) - COUNTED_OUT


@given(used, days, half_lives, st.floats(0.1, 500))
def test_a_saturated_salience_rises_unless_the_access_coincides_with_another_event(
    history: list[Event], moment: float, half_life: float, wait: float
) -> None:
    most = 0.05
    saturated = [*history, (max(history)[0], 10.0, False)]
    more = [*saturated, (moment, BUMP, False)]
    now = max(more)[0] + wait
    before, after = level(saturated, now, half_life, 8.0, most), level(more, now, half_life, 8.0, most)
    if moment in {known for known, *_ in history}:
        assert after == pytest.approx(before)
    else:
        assert after > before


def test_accesses_accumulate_in_the_salience_that_readers_see() -> None:
    found = [salience_of(at(*[0.0] * count), 30) for count in range(1, 11)]
    assert found == sorted(set(found))
    assert salience_of(at(*[0.0] * 20), 0) == Policy().field_salience_max


# The spacing effect and failures


@given(st.integers(2, 12), st.floats(0.5, 60), half_lives)
def test_accesses_spread_out_decay_slower_than_the_same_accesses_at_once(
    count: int, gap: float, half_life: float
) -> None:
    span = gap * (count - 1)
    massed, spread = at(*[span] * count), at(*(gap * place for place in range(count)))
    assert one(spread, half_life)["half_life_days"] > one(massed, half_life)["half_life_days"] == half_life


@given(used, days, half_lives, later)
def test_a_failure_is_remembered_and_shortens_the_half_life(
    history: list[Event], moment: float, half_life: float, wait: float
) -> None:
    failing = [*history, (moment, BUMP, True)]
    before, after = one(history, half_life), one(failing, half_life)
    assert before["failed_strength"] == 0 < after["failed_strength"]
    assert after["half_life_days"] < before["half_life_days"]
    now = max(failing)[0] + wait
    assert level(failing, now, half_life, 8.0) <= level(history, now, half_life, 8.0) + COUNTED_OUT


def test_more_failures_weigh_more() -> None:
    found = [one([*at(0), *[(5.0, BUMP, True)] * count]) for count in range(5)]
    half_lives = [row["half_life_days"] for row in found]
    assert half_lives == sorted(half_lives, reverse=True)
    assert [row["failed_strength"] for row in found] == pytest.approx([BUMP * count for count in range(5)])


@given(events, half_lives, growths)
def test_the_half_life_is_bounded_by_growth_both_ways(events: list[Event], half_life: float, growth: float) -> None:
    found = one(events, half_life, growth)["half_life_days"]
    assert half_life / growth * (1 - 1e-9) <= found <= half_life * growth * (1 + 1e-9)


@given(events, half_lives)
def test_without_growth_it_is_recency_and_frequency(events: list[Event], half_life: float) -> None:
    found, last = one(events, half_life, 1.0), max(events)[0]
    sums = {
        failing: sum(weight * 2 ** (-(last - moment) / half_life) for moment, weight, was in events if was == failing)
        for failing in (False, True)
    }
    assert (found["strength"], found["failed_strength"]) == pytest.approx((sums[False], sums[True]), rel=1e-6)
    assert found["half_life_days"] == half_life


# Time


@given(used, st.lists(st.integers(0, 100_000_000), max_size=6))
def test_a_run_every_night_and_one_a_month_give_the_same(events: list[Event], seconds: list[int]) -> None:
    """Decay is a product over any division of the time."""
    found, last = one(events), max(events)[0]
    steps = [2 ** (-step / 86_400 / found["half_life_days"]) for step in seconds]
    left = salience_of(events, last) * math.prod(steps)
    assert salience_of(events, last + sum(seconds) / 86_400) == pytest.approx(left, abs=2e-9)


@given(events, days, days)
def test_left_alone_it_only_fades_and_stays_within_its_bounds(events: list[Event], a: float, b: float) -> None:
    sooner, afterwards = (salience_of(events, now) for now in sorted((a, b)))
    assert 0 <= afterwards <= sooner <= Policy().field_salience_max


@pytest.mark.parametrize(("elapsed", "left"), [(0, 1), (1, 1 / 2), (2, 1 / 4), (10, 1 / 1024)])
def test_it_halves_each_half_life(elapsed: float, left: float) -> None:
    assert salience_of(at(0.0), elapsed * Policy().salience_half_life_days) == pytest.approx(left, abs=1e-9)


def test_an_event_may_lie_ahead_of_the_clock() -> None:
    """Observations may be dated up to ingest.max_future_days ahead."""
    assert salience_of(at(5.0), 0) == pytest.approx(2 ** (5 / 90))
    assert salience_of([*at(*[10.0] * 9), *at(41.0)], 10) >= salience_of(at(*[10.0] * 9), 10)


def test_without_events_there_is_no_strength_and_a_thousand_years_leave_a_number() -> None:
    assert reinforced({}, 90).is_empty()
    assert salience_of(at(0.0), 365_000) == 0.0


def test_a_run_dated_long_before_every_event_has_numbers() -> None:
    """A run dated 1600 published a salience that was no number, and its rebuild differed."""
    row = pl.DataFrame({"strength": [0.0, 1.0], "reinforced_at": [day(0)] * 2, "half_life_days": [90.0, 0.1]})
    for year in (1, 1600, 1601, 1970):
        found = row.select(now=salience(day(0).replace(year=year), Policy()))["now"].to_list()
        assert found == [0.0, Policy().field_salience_max]


# Scopes


def one_a_scope(*used: dict[str, Any]) -> State:
    """The fold of a topic in each scope, with accesses."""
    stream = [
        observation(number, topic_id=f"t-{number}", scope=scope, fields=[field("owner", '"Aya"')])
        for number, scope in enumerate(SCOPES)
    ]
    return folded(stream, accesses=accessed(*used))


@pytest.fixture(scope="module")
def alone() -> State:
    return one_a_scope({"topic_id": "t-0", "at": 3})


@pytest.mark.slow
@given(history=st.lists(st.tuples(days, st.booleans(), st.sampled_from((None, ["owner"]))), max_size=8))
def test_a_scopes_salience_never_depends_on_accesses_in_another(
    alone: State, history: list[tuple[float, bool, list[str] | None]]
) -> None:
    foreign = [{"topic_id": "t-1", "at": when, "failed": no, "fields": named} for when, no, named in history]
    together = one_a_scope({"topic_id": "t-0", "at": 3}, *foreign)
    own = pl.col("id") == "t-0"
    assert together.topics.filter(own).equals(alone.topics.filter(own))
    of_mine = pl.col("topic_id") == "t-0"
    assert together.fields.filter(of_mine).equals(alone.fields.filter(of_mine))
    assert alone.topics.filter(own)["reinforced_at"].item() == EPOCH + timedelta(days=3)
