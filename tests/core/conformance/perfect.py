"""A memory that conforms, in a few lines: the reference for the checks, and the start of systems that break one thing.

It is given the same statements as any system, and answers from all of them at each call.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

from memstate_core.conformance.system import FIELD_TYPES, Found, Limits, Refused, Statement, Version


class Perfect:
    name = "perfect"

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.stated: list[Statement] = []
        self.ids: dict[str, Statement] = {}
        self.accesses: Counter[tuple[str, str]] = Counter()
        self.waiting: set[tuple[str, str]] = set()
        self.today: list[Statement] = []

    def ingest(self, batch: Sequence[Statement]) -> None:
        if any(self.breaks_rules(said) for said in batch):
            raise Refused("a rule is broken")
        fresh = [said for said in batch if said.id not in self.ids]
        self.ids |= {said.id: said for said in fresh}
        self.stated += fresh
        self.today += fresh

    def breaks_rules(self, said: Statement) -> bool:
        reused = self.ids.get(said.id, said) != said
        types = {"int": int, "string": str}
        wrong = any(not isinstance(v, types[FIELD_TYPES[n]] | None) for n, v in said.values.items())
        return reused or wrong or said.observed_at.year > 2900

    def advance(self, now: datetime) -> None:
        fresh = {(said.scope, said.subject) for said in self.today}
        for said in self.today:
            self.waiting |= {(said.scope, each) for each in self.dependents(said.scope, said.subject)}
        self.waiting -= fresh
        self.today = []

    def dependents(self, scope: str, subject: str) -> set[str]:
        found = {subject}
        while True:
            more = {s.subject for s in self.stated if s.scope == scope and found & set(s.depends_on)} | found
            if more == found:
                return found - {subject}
            found = more

    def subjects(self, scope: str) -> list[str]:
        return list(dict.fromkeys(said.subject for said in self.stated if said.scope == scope))

    def active(self, scope: str) -> list[str]:
        known = self.subjects(scope)
        ranked = sorted(known, key=lambda each: (-self.accesses[scope, each], -known.index(each)))
        return ranked[: self.limits.active]

    def ask(self, scope: str, question: str) -> list[Found]:
        titles = {said.subject: said.title for said in self.stated}
        return [self.lookup(scope, each) for each in self.active(scope) if titles[each] in question]

    def lookup(self, scope: str, subject: str) -> Found:
        names = {n for s in self.stated if (s.scope, s.subject) == (scope, subject) for n in s.values}
        newest = {name: max(self.history(scope, subject, name), key=lambda each: each.valid_from) for name in names}
        return Found(subject, {name: [version.value] for name, version in newest.items()})

    def history(self, scope: str, subject: str, name: str) -> list[Version]:
        mine = [said for said in self.stated if (said.scope, said.subject) == (scope, subject) and name in said.values]
        return [Version(said.values[name], said.since, (said.id,)) for said in mine]

    def review(self, scope: str) -> set[str]:
        return {subject for where, subject in self.waiting if where == scope}

    def feedback(self, scope: str, subject: str, at: datetime) -> None:
        self.accesses[scope, subject] += 1

    def strength(self, scope: str, subject: str) -> float:
        return self.accesses[scope, subject]


class Unfinished:
    """An adapter without methods."""

    name = "unfinished"

    def __init__(self, limits: Limits) -> None: ...
