"""What is asked after a night about a scope as a whole: C3, C5 and C6.

Invariant: as for `memstate_core.conformance.checks`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from memstate_core.conformance.asking import Asked
from memstate_core.conformance.checks import Here
from memstate_core.conformance.report import Check
from memstate_core.conformance.scenario import Day, Kind
from memstate_core.conformance.system import NotOffered, Statement
from memstate_core.conformance.truth import Truth

_SAMPLE = 5
_CHANGES = (Kind.UPDATE, Kind.RETRACTION)


class Reviews:
    """C3: what builds on a changed subject waits for review, over several hops, and nothing without such a reason."""

    def __init__(self) -> None:
        self._may: set[tuple[str, str]] = set()

    def checks(self, here: Here, day: Day) -> Iterator[Check]:
        """One check for each subject whose values changed on this day and that others build on.

        Dependents that were stated anew that day are left out: they have been looked at. Contradictions, late data and
        restatements may cause a review or not. Where everything has a reason to wait, nothing is checked.
        """
        touched = {
            (turn.scope, name) for turn in day.turns if not turn.breaks_rules for name in _touched(turn.statements)
        }
        for scope, subject in touched:
            self._may |= {(scope, each) for each in here.truth.dependents(scope, subject)}
        changed = {
            (turn.scope, each.subject): turn.number
            for turn in day.turns
            if turn.kind in _CHANGES
            for each in turn.statements
            if any(each.values[name] in here.truth.current(turn.scope, each.subject, name) for name in each.values)
        }
        for (scope, subject), turn in sorted(changed.items()):
            due = {each for each in here.truth.dependents(scope, subject) if (scope, each) not in touched}
            spared = {each for each in here.truth.subjects(scope) if (scope, each) not in self._may}
            if due and spared:
                problem = _review_problem(here.asked, scope, due, spared)
                yield Check("C3", "dependents", turn, f"{scope} {subject}", problem)


def _touched(statements: Iterable[Statement]) -> Iterator[str]:
    for each in statements:
        yield from (each.subject, *each.depends_on, *each.mentions)


def _review_problem(asked: Asked, scope: str, due: set[str], spared: set[str]) -> str | None:
    waiting = asked.review(scope)
    if isinstance(waiting, NotOffered):
        return str(waiting)
    if missing := sorted(due - set(waiting)):
        return f"{', '.join(missing)} should wait for review and does not"
    if wrong := sorted(spared & set(waiting)):
        return f"{', '.join(wrong)} waits for review, and nothing that it builds on has changed"
    return None


def bound_checks(here: Here, scopes: Sequence[str], bound: int, turn: int) -> Iterator[Check]:
    """C5: a scope with more subjects than may be active keeps the bound, and what left can be had on request.

    One check for each scope that has more.
    """
    for scope in scopes:
        known = here.truth.subjects(scope)
        if len(known) > bound:
            yield Check("C5", "bound", turn, scope, _bound_problem(here, scope, known, bound))


def _bound_problem(here: Here, scope: str, known: set[str], bound: int) -> str | None:
    active = here.asked.active(scope)
    if isinstance(active, NotOffered):
        return str(active)
    if len(active) > bound:
        return f"{len(active)} subjects are active, expected at most {bound}"
    if not active or set(active) - known:
        return (
            f"the active subjects are {', '.join(sorted(active)[:_SAMPLE]) or 'none'}, expected some that were stated"
        )
    return _unrecoverable(here, scope, known - set(active))


def _unrecoverable(here: Here, scope: str, left: set[str]) -> str | None:
    ordered = sorted(left)
    for subject in ordered[:: max(1, len(ordered) // _SAMPLE)][:_SAMPLE]:
        if problem := here.lookup_problem(scope, subject):
            return f"of {subject}, which left, {problem}"
    return None


def twin_checks(
    asked: Asked, truth: Truth, scope: str, pair: tuple[str, str], bound: int, turn: int
) -> Iterator[Check]:
    """C6: of two subjects that were stated alike, the one that is accessed is stronger, and leaves later.

    The order of leaving is checked while one of them has left, and where nothing ever leaves.
    """
    used, idle = pair
    about = f"{scope} {used} beside {idle}"
    mine, other = asked.strength(scope, used), asked.strength(scope, idle)
    if isinstance(mine, NotOffered):
        yield Check("C6", "strength", turn, about, str(mine))
    else:
        stronger = isinstance(mine, int | float) and isinstance(other, int | float) and mine > other
        problem = None if stronger else f"its strength is {mine}, its twin's {other}"
        yield Check("C6", "strength", turn, about, problem)
    if len(truth.subjects(scope)) <= bound:
        return
    active = asked.active(scope)
    if isinstance(active, NotOffered) or len(active) > bound:
        yield Check("C6", "leaving", turn, about, "nothing leaves, so accesses decide nothing")
    elif (used in active) != (idle in active):
        problem = None if used in active else "it left before its twin, which nobody accessed"
        yield Check("C6", "leaving", turn, about, problem)
