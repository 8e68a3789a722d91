"""The scores: a memory that conforms has all of them, each defect costs its condition, and no condition is for free."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import pytest

from memstate_core.conformance import Found, Limits, Report, Statement, Version, run, trajectory
from memstate_core.conformance.report import CONDITIONS
from memstate_core.conformance.systems.append_only import AppendOnlyStore
from memstate_core.conformance.systems.overwrite import OverwriteStore
from tests.core.conformance.perfect import Perfect

TURNS, SEED = 200, 1


def scored(make: Callable[[Limits], Any], turns: int = TURNS) -> Report:
    drawn = trajectory(turns, SEED)
    return run(make(Limits(drawn.bound)), drawn)


def scores(make: Callable[[Limits], Any]) -> dict[str, float]:
    return {name: found.score for name, found in scored(make).conditions.items()}


class Silent:
    """Answers nothing, in every way that it could."""

    name = "silent"

    def __init__(self, limits: Limits) -> None: ...

    def ingest(self, batch: Sequence[Statement]) -> None: ...

    def advance(self, now: datetime) -> None: ...

    def ask(self, scope: str, question: str) -> list[Found]:
        return []

    def lookup(self, scope: str, subject: str) -> None: ...

    def history(self, scope: str, subject: str, name: str) -> list[Version]:
        return []

    def review(self, scope: str) -> list[str]:
        return []

    def active(self, scope: str) -> list[str]:
        return []

    def strength(self, scope: str, subject: str) -> None: ...


class Everything(Perfect):
    """Answers everything that it ever received from anybody, and finds all of it active and in need of review."""

    def ingest(self, batch: Sequence[Statement]) -> None:
        self.stated += batch

    def ask(self, scope: str, question: str) -> list[Found]:
        return [Found(said.subject, {name: [value] for name, value in said.values.items()}) for said in self.stated]

    def lookup(self, scope: str, subject: str) -> Found:
        mine = [said for said in self.stated if said.subject == subject]
        return Found(subject, {name: [s.values[name] for s in mine if name in s.values] for name in mine[0].values})

    def history(self, scope: str, subject: str, name: str) -> list[Version]:
        return [
            Version(v, said.since, tuple(s.id for s in self.stated))
            for said in self.stated
            for v in said.values.values()
        ]

    def review(self, scope: str) -> set[str]:
        return set(self.subjects(scope))

    def active(self, scope: str) -> list[str]:
        return [said.subject for said in self.stated]

    def strength(self, scope: str, subject: str) -> float:
        return 1.0


def test_a_memory_that_conforms_has_every_score() -> None:
    report = scored(Perfect)
    problems = [each for condition in report.conditions.values() for each in condition.failures]
    assert problems == []
    assert all(condition.tally.checked >= 10 for condition in report.conditions.values())


@pytest.mark.parametrize("make", [Silent, Everything])
def test_no_condition_holds_for_free(make: Callable[[Limits], Any]) -> None:
    found = scored(make, 100).conditions
    assert {name: condition.tally.held for name, condition in found.items()} == dict.fromkeys(CONDITIONS, 0)
    assert all(condition.tally.checked for condition in found.values())


def test_what_a_store_that_overwrites_fails() -> None:
    report = scored(OverwriteStore)
    found = {name: condition.score for name, condition in report.conditions.items()}
    assert (found["C3"], found["C5"], found["C6"]) == (0, 0, 0)
    assert all(0 < found[name] < 0.9 for name in ("C1", "C2", "C4"))
    kinds = report.conditions["C2"].kinds
    assert kinds["refused batch"].held == 0
    assert kinds["late"].held < kinds["late"].checked / 2
    assert kinds["retraction"].held > kinds["retraction"].checked / 2


def test_what_a_store_that_only_appends_fails() -> None:
    report = scored(AppendOnlyStore)
    found = {name: condition.score for name, condition in report.conditions.items()}
    assert (found["C3"], found["C5"], found["C6"]) == (0, 0, 0)
    assert found["C4"] == 1
    assert found["C2"] < 0.1
    answers, history = (report.conditions["C1"].kinds[kind] for kind in ("answer", "history"))
    assert answers.held < answers.checked / 2
    assert 0.8 < history.held / history.checked < 1


class _Defects:
    """Systems that do one thing wrong."""

    class LatestWins(Perfect):
        def lookup(self, scope: str, subject: str) -> Found:
            mine = [said for said in self.stated if (said.scope, said.subject) == (scope, subject)]
            return Found(subject, {name: [value] for said in mine for name, value in said.values.items()})

    class Leaks(Perfect):
        def ask(self, scope: str, question: str) -> list[Found]:
            return [*super().ask(scope, question), *super().ask("user:bo", question)]

    class TakesAnything(Perfect):
        def breaks_rules(self, said: Statement) -> bool:
            return False

    class TakesHalf(Perfect):
        def ingest(self, batch: Sequence[Statement]) -> None:
            for said in batch:
                if not self.breaks_rules(said):
                    super().ingest([said])

    class OneHop(Perfect):
        def dependents(self, scope: str, subject: str) -> set[str]:
            return {said.subject for said in self.stated if said.scope == scope and subject in said.depends_on}

    class FollowsMentions(Perfect):
        def dependents(self, scope: str, subject: str) -> set[str]:
            near = {s.subject for s in self.stated if s.scope == scope and subject in s.mentions}
            return super().dependents(scope, subject) | near

    class LosesSources(Perfect):
        def history(self, scope: str, subject: str, name: str) -> list[Version]:
            found = sorted(super().history(scope, subject, name), key=lambda each: each.valid_from)
            return [Version(each.value, each.valid_from) for each in found[:-1]] + found[-1:]

    class Unbounded(Perfect):
        def active(self, scope: str) -> list[str]:
            return self.subjects(scope)

    class Destroys(Perfect):
        def lookup(self, scope: str, subject: str) -> Found:
            return super().lookup(scope, subject) if subject in self.active(scope) else Found(subject, {})

    class IgnoresUse(Perfect):
        def strength(self, scope: str, subject: str) -> float:
            return 1.0

        def feedback(self, scope: str, subject: str, at: datetime) -> None: ...

    class PunishesUse(Perfect):
        def feedback(self, scope: str, subject: str, at: datetime) -> None:
            self.accesses[scope, subject] -= 1


@pytest.mark.parametrize(
    ("make", "costs"),
    [
        (_Defects.LatestWins, {"C1", "C2", "C5"}),
        (_Defects.Leaks, {"C1"}),
        (_Defects.TakesAnything, {"C1", "C2", "C5"}),
        (_Defects.TakesHalf, {"C1", "C2", "C5"}),
        (_Defects.OneHop, {"C3"}),
        (_Defects.FollowsMentions, {"C3"}),
        (_Defects.LosesSources, {"C4"}),
        (_Defects.Unbounded, {"C5", "C6"}),
        (_Defects.Destroys, {"C1", "C2", "C5"}),
        (_Defects.IgnoresUse, {"C6"}),
        (_Defects.PunishesUse, {"C6"}),
    ],
)
def test_a_defect_costs_its_conditions(make: Callable[[Limits], Any], costs: set[str]) -> None:
    lost = {name for name, score in scores(make).items() if score < 1}
    assert lost == costs


def test_what_a_system_does_not_offer_counts_as_not_held() -> None:
    class Least:
        name = "least"

        def __init__(self, limits: Limits) -> None:
            self._inner = Perfect(limits)
            self.ingest, self.advance, self.ask = self._inner.ingest, self._inner.advance, self._inner.ask

    report = scored(Least, 100)
    assert {name for name, found in report.conditions.items() if found.score == 0} == {"C3", "C4", "C5", "C6"}
    assert report.conditions["C3"].failures[0].problem == "the system offers no review"
