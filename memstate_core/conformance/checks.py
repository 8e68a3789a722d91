"""What is asked after a night about each turn of its day: C1, C2 and C4.

Invariant: no check holds for a system that answers nothing, and none for one that answers everything it ever received.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from memstate_core.conformance.asking import Asked, together
from memstate_core.conformance.report import Check
from memstate_core.conformance.scenario import SCOPES, Kind, Turn
from memstate_core.conformance.system import Found, NotOffered, Statement, Value
from memstate_core.conformance.truth import Truth, periods_of


@dataclass(frozen=True)
class Here:
    """What the checks of a night look at: the system, the truth, the titles of subjects, and the bound."""

    asked: Asked
    truth: Truth
    titles: Mapping[str, str]
    bound: int

    def is_active(self, scope: str, subject: str) -> bool:
        """Whether default answers have to include a subject.

        Always in a scope within its bound; over it, unless the system says that the subject has left.
        """
        if len(self.truth.subjects(scope)) <= self.bound:
            return True
        active = self.asked.active(scope)
        return isinstance(active, NotOffered) or subject in active

    def lookup_problem(self, scope: str, subject: str) -> str | None:
        """What is wrong with a subject on explicit request; None if nothing is."""
        found = self.asked.lookup(scope, subject, self.titles[subject])
        return self.values_problem(scope, subject, found)

    def values_problem(self, scope: str, subject: str, found: Found | None) -> str | None:
        """What is wrong with the values that were given for a subject, against all its fields."""
        if found is None:
            return "nothing was answered"
        for name in sorted(self.truth.fields(scope, subject)):
            expected, given = self.truth.current(scope, subject, name), list(found.values.get(name, ()))
            if problem := _mismatch(name, given, expected):
                return problem
        unknown = sorted(found.values.keys() - self.truth.fields(scope, subject))
        return f"it has {', '.join(unknown)}, which nobody stated" if unknown else None


def turn_checks(here: Here, turn: Turn) -> Iterator[Check]:
    """The checks of one turn."""
    subjects = dict.fromkeys(each.subject for each in turn.statements)
    if turn.breaks_rules:
        problems = [f"{each.subject}: {found}" for each in turn.statements if (found := _current_problem(here, each))]
        about = f"{turn.scope} {' and '.join(subjects)}"
        yield Check("C2", "refused batch", turn.number, about, "; ".join(problems) or None)
        return
    for subject in subjects:
        yield _made("C1", "answer", turn, subject, _answer_problem(here, turn.scope, subject))
        for scope in SCOPES:
            if scope != turn.scope and subject in here.truth.subjects(scope) and here.is_active(scope, subject):
                problem = _answer_problem(here, scope, subject)
                yield Check("C1", "other tenants", turn.number, f"{scope} {subject}", problem)
    for statement in turn.statements:
        for name in statement.values:
            yield _made("C1", "history", turn, statement.subject, _history_problem(here, statement, name))
            yield _made("C4", "sources", turn, statement.subject, _sources_problem(here, statement, name))
    if turn.kind in (Kind.LATE, Kind.DUPLICATE, Kind.RETRACTION):
        for statement in turn.statements:
            yield _made("C2", turn.kind, turn, statement.subject, _current_problem(here, statement))


def _made(condition: str, kind: str, turn: Turn, subject: str, problem: str | None) -> Check:
    return Check(condition, kind, turn.number, f"{turn.scope} {subject}", problem)


def _answer_problem(here: Here, scope: str, subject: str) -> str | None:
    """What is wrong with the default answer about a subject, and with everything else that it says."""
    answers = here.asked.answers(scope, here.titles[subject])
    mine = together(answers, subject)
    if here.is_active(scope, subject):
        if problem := here.values_problem(scope, subject, mine):
            return problem
    elif mine is not None:
        return "it has left the active subjects and is answered by default"
    for other in sorted({each.subject for each in answers} - {subject}):
        if other not in here.truth.subjects(scope):
            return f"the answer has {other}, which this tenant never stated"
        if not here.is_active(scope, other):
            return f"the answer has {other}, which has left the active subjects"
        if problem := here.values_problem(scope, other, together(answers, other)):
            return f"of {other}, {problem}"
    return None if here.is_active(scope, subject) else here.lookup_problem(scope, subject)


def _mismatch(name: str, given: Sequence[Value], expected: frozenset[Value]) -> str | None:
    said = {value for value in given if value is not None}
    wanted = expected - {None}
    wrong = sorted(map(str, said - wanted))
    if wrong:
        return f"{name} is given as {', '.join(wrong)}, expected {_shown(wanted)}"
    return f"{name} is missing, expected {_shown(wanted)}" if wanted and not said else None


def _shown(values: frozenset[Value]) -> str:
    return " or ".join(sorted(map(str, values))) or "no value"


def _history_problem(here: Here, statement: Statement, name: str) -> str | None:
    found = here.asked.history(statement.scope, statement.subject, name)
    if isinstance(found, NotOffered):
        return str(found)
    expected = here.truth.history(statement.scope, statement.subject, name)
    got = [(each.since, each.values) for each in periods_of(found)]
    wanted = [(each.since, each.values) for each in expected]
    return None if got == wanted else f"{name} was {_line(got)}, expected {_line(wanted)}"


def _line(periods: Sequence[tuple[object, frozenset[Value]]]) -> str:
    return ", then ".join(f"{_shown(values)} since {since}" for since, values in periods) or "nothing"


def _sources_problem(here: Here, statement: Statement, name: str) -> str | None:
    """What is wrong with the chain from the values of a field to the statements behind them."""
    found = here.asked.history(statement.scope, statement.subject, name)
    if isinstance(found, NotOffered):
        return str(found)
    cited = {value: set[str]() for each in periods_of(found) for value in each.values}
    for version in found:
        cited.setdefault(version.value, set()).update(version.sources)
    stated: dict[Value, set[str]] = {}
    for period in here.truth.history(statement.scope, statement.subject, name):
        for value in period.values - {None}:
            stated.setdefault(value, set()).update(period.sources)
    for value, sources in stated.items():
        if not cited.get(value):
            return f"{name} {value} leads to no statement, expected {', '.join(sorted(sources))}"
        if wrong := cited[value] - sources:
            return f"{name} {value} leads to {', '.join(sorted(wrong))}, which did not state it"
    return None if stated else _history_problem(here, statement, name)


def _current_problem(here: Here, statement: Statement) -> str | None:
    """What is wrong with the current values of a statement's fields, among which nothing late or refused may be."""
    found = here.asked.lookup(statement.scope, statement.subject, here.titles[statement.subject])
    if found is None:
        return "nothing was answered"
    for name in statement.values:
        expected = here.truth.current(statement.scope, statement.subject, name)
        if problem := _mismatch(name, list(found.values.get(name, ())), expected):
            return problem
    return None
