"""A naive store that keeps the last value that was stated: a dictionary, as many agents have."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

from memstate_core.conformance.system import Found, Limits, Statement, Value, Version


class OverwriteStore:
    """Keeps one value a field, whatever came last. It has no clock, forgets nothing and refuses nothing."""

    name = "overwrite"

    def __init__(self, limits: Limits) -> None:
        del limits  # it has no policy
        self._values: dict[tuple[str, str], dict[str, tuple[Value, Statement]]] = {}
        self._titles: dict[tuple[str, str], str] = {}

    def ingest(self, batch: Sequence[Statement]) -> None:
        """Overwrites."""
        for said in batch:
            where = said.scope, said.subject
            self._titles[where] = said.title
            self._values.setdefault(where, {}).update({name: (value, said) for name, value in said.values.items()})

    def advance(self, now: datetime) -> None:
        """Does nothing."""

    def ask(self, scope: str, question: str) -> Sequence[Found]:
        """The subject whose title is in the question."""
        named = [subject for (where, subject), title in self._titles.items() if where == scope and title in question]
        return [self.lookup(scope, subject) for subject in named]

    def lookup(self, scope: str, subject: str) -> Found:
        """The last values."""
        kept = self._values.get((scope, subject), {})
        return Found(subject, {name: [value] for name, (value, _) in kept.items()})

    def history(self, scope: str, subject: str, name: str) -> Sequence[Version]:
        """The one value that it has."""
        kept = self._values.get((scope, subject), {}).get(name)
        return [] if kept is None else [Version(kept[0], kept[1].since, (kept[1].id,))]

    def active(self, scope: str) -> Collection[str]:
        """All of them."""
        return [subject for where, subject in self._values if where == scope]
