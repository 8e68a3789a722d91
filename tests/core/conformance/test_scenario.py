"""The trajectory: a function of its seed, adversarial, and consistent with the rules that the truth relies on."""

from __future__ import annotations

from collections import Counter

import pytest

from memstate_core.conformance.scenario import SCOPES, Kind, Trajectory, Turn, trajectory
from memstate_core.conformance.system import FIELD_TYPES


@pytest.fixture(scope="module")
def drawn() -> Trajectory:
    return trajectory(500, 3)


def turns(drawn: Trajectory) -> list[Turn]:
    return [turn for day in drawn.days for turn in day.turns]


def stated(drawn: Trajectory) -> list[Turn]:
    return [turn for turn in turns(drawn) if not turn.breaks_rules]


def test_the_seed_and_the_number_of_turns_decide_it() -> None:
    assert trajectory(120, 7) == trajectory(120, 7)
    assert trajectory(120, 7) != trajectory(120, 8)
    assert trajectory(120, 7).days[:4] == trajectory(400, 7).days[:4]


@pytest.mark.parametrize("seed", range(5))
def test_it_has_every_kind_of_turn_in_every_tenant(seed: int) -> None:
    found = Counter((turn.scope, turn.kind) for turn in turns(trajectory(500, seed)))
    assert set(found) == {(scope, kind) for scope in SCOPES for kind in Kind}


def test_it_has_the_turns_that_were_asked_for_in_the_order_of_time(drawn: Trajectory) -> None:
    assert [turn.number for turn in turns(drawn)] == list(range(1, 501))
    times = [time for day in drawn.days for time in (*(turn.at for turn in day.turns), day.night)]
    assert times == sorted(times)
    assert trajectory(1).turns == 1


def test_tenants_use_the_same_keys_for_different_things(drawn: Trajectory) -> None:
    keys = {scope: {s.subject for t in stated(drawn) for s in t.statements if s.scope == scope} for scope in SCOPES}
    assert all(len(keys[one] & keys[other]) > 10 for one in SCOPES for other in SCOPES)
    again = {s.id for t in stated(drawn) if t.kind is Kind.RESTATEMENT for s in t.statements}
    values = Counter(
        (name, value)
        for statement in {s.id: s for t in stated(drawn) for s in t.statements if s.id not in again}.values()
        for name, value in statement.values.items()
        if value is not None
    )
    assert max(values.values()) == 1


def test_scopes_come_under_pressure(drawn: Trajectory) -> None:
    for scope in SCOPES:
        subjects = {s.subject for t in stated(drawn) for s in t.statements if s.scope == scope}
        assert len(subjects) > drawn.bound


def test_statements_are_late_in_both_ways(drawn: Trajectory) -> None:
    late = [(turn, s) for turn in turns(drawn) if turn.kind is Kind.LATE for s in turn.statements]
    assert all(s.since < turn.at for turn, s in late)
    assert {s.valid_from is None for _, s in late} == {True, False}


def test_only_contradictions_hold_since_the_same_time(drawn: Trajectory) -> None:
    once = {s.id: (turn, s) for turn in stated(drawn) for s in turn.statements}
    since = Counter(
        (s.scope, s.subject, name, s.since)
        for turn, s in once.values()
        if turn.kind is not Kind.CONTRADICTION
        for name in s.values
    )
    assert max(since.values()) == 1
    assert all(set(s.values) == {"status"} for turn, s in once.values() if turn.kind is Kind.CONTRADICTION)


def test_a_violation_breaks_one_rule_and_stands_beside_a_good_statement(drawn: Trajectory) -> None:
    ids = {s.id for turn in stated(drawn) for s in turn.statements}
    for turn in turns(drawn):
        if turn.breaks_rules:
            good, bad = turn.statements
            assert good.observed_at == turn.at
            wrong = [
                bad.id in ids,
                bad.observed_at.year == 2999,
                any(FIELD_TYPES[name] == "int" and not isinstance(value, int) for name, value in bad.values.items()),
            ]
            assert wrong.count(True) == 1


def test_only_what_was_there_the_day_before_is_accessed(drawn: Trajectory) -> None:
    known: set[tuple[str, str]] = set()
    for day in drawn.days:
        assert {(t.scope, t.accessed) for t in day.turns if t.accessed is not None} <= known
        known |= {(t.scope, s.subject) for t in day.turns if not t.breaks_rules for s in t.statements}


def test_the_second_of_twins_is_never_touched_again(drawn: Trajectory) -> None:
    for scope, pairs in drawn.twins.items():
        assert pairs
        for _, idle in pairs:
            about = [t for t in turns(drawn) if t.scope == scope and idle in {s.subject for s in t.statements}]
            assert [turn.kind for turn in about] == [Kind.TWINS]
            assert not any(turn.accessed == idle and turn.scope == scope for turn in turns(drawn))
