"""Takes a system through a trajectory, and judges it after every night."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from memstate_core.conformance.asking import Asked
from memstate_core.conformance.checks import Here, turn_checks
from memstate_core.conformance.night_checks import Reviews, bound_checks, twin_checks
from memstate_core.conformance.report import Check, Report
from memstate_core.conformance.scenario import SCOPES, Day, Kind, Trajectory, Turn
from memstate_core.conformance.system import Refused, System
from memstate_core.conformance.truth import Truth


def run(system: System, trajectory: Trajectory, progress: Callable[[int], None] | None = None) -> Report:
    """Runs a system through a trajectory.

    Args:
        system: the adapter, with an empty memory whose policy is `Limits(trajectory.bound)`.
        trajectory: the scenario.
        progress: receives the number of turns judged so far.
    """
    report, judge = Report(system.name), _Judge(system, trajectory)
    judged = 0
    for day in trajectory.days:
        report.add(judge.day(day))
        judged += len(day.turns)
        if progress is not None:
            progress(judged)
    return report


class _Judge:
    def __init__(self, system: System, trajectory: Trajectory) -> None:
        self._system, self._trajectory = system, trajectory
        self._asked, self._truth, self._titles = Asked(system), Truth(), dict[str, str]()
        self._reviews, self._accessed = Reviews(), Counter[tuple[str, str]]()

    def day(self, day: Day) -> Iterator[Check]:
        """Acts the turns of a day, lets the night pass, and checks."""
        for turn in day.turns:
            self._act(turn)
        self._system.advance(day.night)
        self._asked.forget()
        here = Here(self._asked, self._truth, self._titles, self._trajectory.bound)
        for turn in day.turns:
            yield from turn_checks(here, turn)
        yield from self._reviews.checks(here, day)
        last, bound = day.turns[-1].number, self._trajectory.bound
        yield from bound_checks(here, SCOPES, bound, last)
        for scope in SCOPES:
            for pair in self._trajectory.twins[scope]:
                if self._accessed[scope, pair[0]]:
                    yield from twin_checks(self._asked, self._truth, scope, pair, bound, last)

    def _act(self, turn: Turn) -> None:
        self._truth.apply(turn)
        self._titles |= {each.subject: each.title for each in turn.statements}
        if turn.kind is Kind.ACCESS and turn.accessed is not None:
            self._accessed[turn.scope, turn.accessed] += 1
            if self._asked.offers("feedback"):
                self._system.feedback(turn.scope, turn.accessed, turn.at)  # type: ignore[attr-defined]
            return
        try:
            self._system.ingest(turn.statements)
        except Refused:
            return  # where a batch should have been taken, the checks find it missing
