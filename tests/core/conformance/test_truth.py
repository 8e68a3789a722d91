"""Ground truth on examples by hand, and its independence from the order of delivery."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

from memstate_core.conformance.scenario import Kind, Turn, trajectory
from memstate_core.conformance.system import Statement, Value, Version
from memstate_core.conformance.truth import Truth, periods_of

START = datetime(2024, 1, 1, tzinfo=UTC)


def day(number: int) -> datetime:
    return START + timedelta(days=number)


def said(name: str, at: int, owner: Value, *, depends_on: tuple[str, ...] = (), subject: str = "kiln") -> Turn:
    statement = Statement(name, "user:ada", subject, "Kiln", {"owner": owner}, day(at), depends_on=depends_on)
    return Turn(1, Kind.NEW, day(at), "user:ada", (statement,))


def after(*given: Turn) -> Truth:
    truth = Truth()
    for turn in given:
        truth.apply(turn)
    return truth


def owners(truth: Truth) -> list[tuple[int, set[Value], set[str]]]:
    found = truth.history("user:ada", "kiln", "owner")
    return [((each.since - START).days, set(each.values), set(each.sources)) for each in found]


def test_late_statements_take_their_place() -> None:
    truth = after(said("a", 1, "Aya"), said("c", 9, "Cleo"), said("b", 5, "Ben"))
    assert owners(truth) == [(1, {"Aya"}, {"a"}), (5, {"Ben"}, {"b"}), (9, {"Cleo"}, {"c"})]
    assert truth.current("user:ada", "kiln", "owner") == {"Cleo"}


def test_the_same_value_again_is_the_same_period_unless_another_lies_between() -> None:
    assert owners(after(said("a", 1, "Aya"), said("b", 9, "Aya"))) == [(1, {"Aya"}, {"a", "b"})]
    between = owners(after(said("a", 1, "Aya"), said("b", 9, "Aya"), said("c", 5, "Cleo")))
    assert between == [(1, {"Aya"}, {"a"}), (5, {"Cleo"}, {"c"}), (9, {"Aya"}, {"b"})]


def test_contradictions_both_hold_until_something_newer() -> None:
    assert after(said("a", 1, "Aya"), said("b", 1, "Ben")).current("user:ada", "kiln", "owner") == {"Aya", "Ben"}


def test_a_withdrawn_value_is_none_and_other_tenants_know_nothing() -> None:
    truth = after(said("a", 1, "Aya"), said("b", 2, None))
    assert truth.current("user:ada", "kiln", "owner") == {None}
    assert truth.subjects("user:bo") == set()
    assert truth.current("user:bo", "kiln", "owner") == {None}


def test_dependents_are_followed_over_several_hops_and_cycles() -> None:
    chain = (("b", ("a",)), ("c", ("b",)), ("a", ("c",)), ("d", ()))
    truth = after(*(said(name, 1, name, subject=name, depends_on=on) for name, on in chain))
    assert truth.dependents("user:ada", "a") == {"b", "c"}
    assert truth.dependents("user:ada", "d") == set()


def test_the_order_of_delivery_does_not_matter() -> None:
    turns = [turn for each in trajectory(200, 2).days for turn in each.turns]
    there = after(*turns)
    random.Random(1).shuffle(turns)
    back = after(*turns, *turns)
    for scope in ("user:ada", "user:bo", "project:mill"):
        assert there.subjects(scope) == back.subjects(scope)
        for subject in there.subjects(scope):
            for name in there.fields(scope, subject):
                assert there.history(scope, subject, name) == back.history(scope, subject, name)


def test_a_system_may_give_its_history_in_any_order_and_repeat_values() -> None:
    versions = [Version("Ben", day(5), ("b",)), Version("Aya", day(1)), Version("Ben", day(7), ("c",))]
    assert [(p.since, p.values, p.sources) for p in periods_of(versions)] == [
        (day(1), {"Aya"}, {""}),
        (day(5), {"Ben"}, {"b", "c"}),
    ]
