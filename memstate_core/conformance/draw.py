"""Draws the turns of a trajectory one after another, from what was drawn before.

Invariants: a value is never drawn twice, except to state the same again; no two statements about a field of a subject
hold since the same time, except contradictions, which are about `status` alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from random import Random

from memstate_core.conformance.scenario import SCOPES, WEIGHTS, Kind, Turn
from memstate_core.conformance.system import Statement, Value

_FIRST = ("Amber", "Birch", "Copper", "Dusky", "Early", "Faded", "Grey", "Hollow", "Iron", "Jade", "Keen", "Long")
_SECOND = ("Anchor", "Bridge", "Canal", "Dam", "Engine", "Ferry", "Gate", "Harbour", "Island", "Jetty", "Kiln", "Lock")
_PEOPLE = ("Rowan", "Selma", "Tariq", "Uma", "Viktor", "Wanda", "Xenia", "Yusuf", "Zora")
_STATES = ("planned", "open", "paused", "shut", "sold", "leased")
_FAR = datetime(2999, 1, 1, tzinfo=UTC)
_MOST_HOPS = 4
_TWIN_SHARE = 0.7
_BASE_SHARE = 0.6


class Draw:
    """What has been drawn so far."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self.twins: dict[str, list[tuple[str, str]]] = defaultdict(list)
        self._stated: dict[str, list[Statement]] = defaultdict(list)
        self._plain: dict[str, list[str]] = defaultdict(list)
        self._hops: dict[tuple[str, str], int] = {}
        self._bases: dict[str, list[str]] = defaultdict(list)
        self._used: set[tuple[str, str, datetime]] = set()
        self._answered: set[tuple[str, str]] = set()
        self._titles = [f"{first} {second}" for first in _FIRST for second in _SECOND]
        self._random.shuffle(self._titles)
        self._count = 0
        self._number, self._at = 0, _FAR

    def begin_day(self) -> None:
        """Begins a day: from here on, all that was stated before can be retrieved."""
        self._answered = {(scope, each.subject) for scope, stated in self._stated.items() for each in stated}

    def turn(self, number: int, at: datetime) -> Turn:
        """The next turn; a kind that has nothing to act on yet gives way to a new subject."""
        self._number, self._at = number, at
        scope = self._random.choice(SCOPES)
        kind = self._random.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        if kind is Kind.ACCESS:
            accessed = self._accessed(scope)
            if accessed is not None:
                return Turn(number, kind, at, scope, accessed=accessed)
        drawn = self._batch(kind, scope)
        if not drawn:
            kind, drawn = Kind.NEW, self._new(scope)
        if kind is not Kind.VIOLATION:
            self._keep(drawn)
        return Turn(number, kind, at, scope, tuple(drawn))

    def _batch(self, kind: Kind, scope: str) -> list[Statement]:
        make: dict[Kind, Callable[[str], list[Statement]]] = {
            Kind.NEW: self._new,
            Kind.DEPENDENT: self._dependent,
            Kind.TWINS: self._twins,
            Kind.UPDATE: self._update,
            Kind.LATE: self._late,
            Kind.CONTRADICTION: self._contradiction,
            Kind.RESTATEMENT: self._restatement,
            Kind.RETRACTION: self._retraction,
            Kind.DUPLICATE: self._duplicate,
            Kind.VIOLATION: self._violation,
        }
        return make[kind](scope) if kind in make else []

    def _keep(self, drawn: list[Statement]) -> None:
        for statement in drawn:
            known = self._stated[statement.scope]
            if statement not in known:
                known.append(statement)
            self._used.add((statement.scope, statement.subject, statement.since))

    def _statement(
        self,
        scope: str,
        subject: str,
        values: dict[str, Value],
        *,
        observed_at: datetime | None = None,
        valid_from: datetime | None = None,
        depends_on: tuple[str, ...] = (),
        mentions: tuple[str, ...] = (),
    ) -> Statement:
        self._count += 1
        name = f"s{self._count:04}"
        title = subject.replace("-", " ").title()
        when = observed_at or self._at
        return Statement(name, scope, subject, title, values, when, valid_from, depends_on, mentions)

    def _fresh(self, name: str) -> Value:
        self._count += 1
        if name == "level":
            return self._count
        words = _PEOPLE if name == "owner" else _STATES
        return f"{self._random.choice(words)}-{self._count}"

    def _subject(self, scope: str) -> str:
        """The key of a subject that this tenant does not have; other tenants may have it."""
        known = {statement.subject for statement in self._stated[scope]}
        self._count += 1
        free = (key for title in self._titles if (key := title.lower().replace(" ", "-")) not in known)
        return next(free, f"extra-{self._count}")

    def _first(self, scope: str, subject: str, **more: tuple[str, ...]) -> Statement:
        values = {name: self._fresh(name) for name in ("owner", "level", "status")}
        return self._statement(scope, subject, values, **more)  # type: ignore[arg-type]

    def _new(self, scope: str) -> list[Statement]:
        subject = self._subject(scope)
        known = self._plain[scope]
        mentions = (self._random.choice(known),) if known and self._random.random() < 0.5 else ()
        self._plain[scope].append(subject)
        self._hops[scope, subject] = 0
        return [self._first(scope, subject, mentions=mentions)]

    def _dependent(self, scope: str) -> list[Statement]:
        bases = [each for each in self._plain[scope] if self._hops[scope, each] < _MOST_HOPS]
        if not bases:
            return []
        base, subject = self._random.choice(bases), self._subject(scope)
        others = [each for each in self._plain[scope] if each != base]
        mentions = (self._random.choice(others),) if others else ()
        self._plain[scope].append(subject)
        self._bases[scope].append(base)
        self._hops[scope, subject] = self._hops[scope, base] + 1
        return [self._first(scope, subject, depends_on=(base,), mentions=mentions)]

    def _twins(self, scope: str) -> list[Statement]:
        pair = []
        for _ in range(2):
            pair.append(self._first(scope, self._subject(scope)))
            self._stated[scope].append(pair[-1])
        self.twins[scope].append((pair[0].subject, pair[1].subject))
        return pair

    def _accessed(self, scope: str) -> str | None:
        """A subject that was there on an earlier day, since only what can be retrieved is accessed."""
        twins = [pair[0] for pair in self.twins[scope] if (scope, pair[0]) in self._answered]
        if twins and self._random.random() < _TWIN_SHARE:
            return self._random.choice(twins)
        others = [each for each in self._plain[scope] if (scope, each) in self._answered]
        return self._random.choice(others) if others else None

    def _changing(self, scope: str) -> str:
        """A subject to change, preferably one that others build on."""
        bases = self._bases[scope]
        return self._random.choice(bases if bases and self._random.random() < _BASE_SHARE else self._plain[scope])

    def _update(self, scope: str) -> list[Statement]:
        if not self._plain[scope]:
            return []
        subject = self._changing(scope)
        names = self._random.sample(("owner", "level", "status"), self._random.choice((1, 1, 2)))
        return [self._statement(scope, subject, {name: self._fresh(name) for name in names})]

    def _late(self, scope: str) -> list[Statement]:
        """Something from before the newest statement: noticed then and delivered now, or noticed only now."""
        if not self._plain[scope]:
            return []
        subject = self._random.choice(self._plain[scope])
        times = [each.since for each in self._stated[scope] if each.subject == subject]
        first, last = min(times) - timedelta(days=5), max(times)
        since = first + timedelta(seconds=self._random.randrange(int((last - first).total_seconds())))
        if (scope, subject, since) in self._used:
            return []
        name = self._random.choice(("owner", "level", "status"))
        values = {name: self._fresh(name)}
        if self._random.random() < 0.5:
            return [self._statement(scope, subject, values, observed_at=since)]
        return [self._statement(scope, subject, values, valid_from=since)]

    def _contradiction(self, scope: str) -> list[Statement]:
        if not self._plain[scope]:
            return []
        subject = self._random.choice(self._plain[scope])
        since = max(s.since for s in self._stated[scope] if s.subject == subject and "status" in s.values)
        return [self._statement(scope, subject, {"status": self._fresh("status")}, valid_from=since)]

    def _newest(self, scope: str) -> tuple[str, str, Value] | None:
        if not self._plain[scope]:
            return None
        subject, name = self._changing(scope), self._random.choice(("owner", "level"))
        stated = [each for each in self._stated[scope] if each.subject == subject and name in each.values]
        return subject, name, max(stated, key=lambda each: each.since).values[name]

    def _restatement(self, scope: str) -> list[Statement]:
        found = self._newest(scope)
        if found is None or found[2] is None:
            return []
        return [self._statement(scope, found[0], {found[1]: found[2]})]

    def _retraction(self, scope: str) -> list[Statement]:
        found = self._newest(scope)
        if found is None or found[2] is None:
            return []
        return [self._statement(scope, found[0], {found[1]: None})]

    def _duplicate(self, scope: str) -> list[Statement]:
        """A statement again, if possible one that was superseded since."""
        stated = [each for each in self._stated[scope] if each.subject in self._plain[scope]]
        newest = {(each.subject, name): each.since for each in sorted(stated, key=_since) for name in each.values}
        old = [each for each in stated if any(newest[each.subject, name] > each.since for name in each.values)]
        return [self._random.choice(old or stated)] if stated else []

    def _violation(self, scope: str) -> list[Statement]:
        """A good statement and one that breaks a rule, in one batch."""
        if len(self._plain[scope]) < 2:
            return []
        good, bad = self._random.sample(self._plain[scope], 2)
        fine = self._statement(scope, good, {"owner": self._fresh("owner")})
        how = self._random.choice(("type", "id", "future"))
        if how == "type":
            return [fine, self._statement(scope, bad, {"level": self._fresh("owner")})]
        if how == "future":
            return [fine, self._statement(scope, bad, {"owner": self._fresh("owner")}, observed_at=_FAR)]
        earlier = self._random.choice(self._stated[scope])
        broken = self._statement(scope, bad, {"owner": self._fresh("owner")})
        other = Statement(earlier.id, scope, bad, broken.title, broken.values, broken.observed_at)
        return [fine, other]


def _since(statement: Statement) -> datetime:
    return statement.since
