"""Ground truth, from the turns alone: what holds after them, what held, what depends on what, and what was said where.

Deliberately plain: it keeps the statements and sorts them, and shares no code with any memory. Invariant: the order in
which statements arrive does not matter.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import groupby
from typing import NamedTuple

from memstate_core.conformance.scenario import Turn
from memstate_core.conformance.system import Statement, Value, Version


class Period(NamedTuple):
    """The values that a field has since a time (several if sources contradict each other), and who says so."""

    since: datetime
    values: frozenset[Value]
    sources: frozenset[str]


class Truth:
    """What is true after the turns so far."""

    def __init__(self) -> None:
        self._stated: dict[tuple[str, str], list[Statement]] = defaultdict(list)
        self._dependents: dict[tuple[str, str], set[str]] = defaultdict(set)

    def apply(self, turn: Turn) -> None:
        """Takes what a turn states; batches that break a rule state nothing, nor does the same statement again."""
        for statement in () if turn.breaks_rules else turn.statements:
            stated = self._stated[statement.scope, statement.subject]
            if statement not in stated:
                stated.append(statement)
            for base in statement.depends_on:
                self._dependents[statement.scope, base].add(statement.subject)

    def subjects(self, scope: str) -> set[str]:
        """All subjects of a scope."""
        return {subject for where, subject in self._stated if where == scope}

    def fields(self, scope: str, subject: str) -> set[str]:
        """The fields of a subject."""
        return {name for statement in self._stated.get((scope, subject), ()) for name in statement.values}

    def history(self, scope: str, subject: str, name: str) -> list[Period]:
        """The periods of a field, oldest first; consecutive equal values are one period."""
        stated = [each for each in self._stated.get((scope, subject), ()) if name in each.values]
        points = [(each.since, each.values[name], each.id) for each in stated]
        return _periods(points)

    def current(self, scope: str, subject: str, name: str) -> frozenset[Value]:
        """The values that may be given as current: those that hold since the latest time."""
        periods = self.history(scope, subject, name)
        return periods[-1].values if periods else frozenset((None,))

    def dependents(self, scope: str, subject: str) -> set[str]:
        """Everything that builds on a subject, directly or not."""
        found: set[str] = set()
        waiting = [subject]
        while waiting:
            fresh = self._dependents.get((scope, waiting.pop()), set()) - found - {subject}
            found |= fresh
            waiting += sorted(fresh)
        return found


def periods_of(versions: Iterable[Version]) -> list[Period]:
    """A system's history in the same form, whatever its order and however it repeats values."""
    return _periods([(each.valid_from, each.value, source) for each in versions for source in each.sources or ("",)])


def _periods(points: Sequence[tuple[datetime, Value, str]]) -> list[Period]:
    found: list[Period] = []
    for since, group in groupby(sorted(points, key=lambda point: point[0]), key=lambda point: point[0]):
        rows = list(group)
        values, sources = frozenset(row[1] for row in rows), frozenset(row[2] for row in rows)
        if found and found[-1].values == values:
            found[-1] = Period(found[-1].since, values, found[-1].sources | sources)
        else:
            found.append(Period(since, values, sources))
    return found
