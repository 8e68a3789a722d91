"""A naive store that keeps every statement and finds it again: a log with search."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

from memstate_core.conformance.system import Found, Limits, Statement, Version


class AppendOnlyStore:
    """Keeps every statement with its time and id. It replaces, forgets and refuses nothing."""

    name = "append-only"

    def __init__(self, limits: Limits) -> None:
        del limits  # it has no policy
        self._log: list[Statement] = []

    def ingest(self, batch: Sequence[Statement]) -> None:
        """Appends."""
        self._log += batch

    def advance(self, now: datetime) -> None:
        """Does nothing."""

    def ask(self, scope: str, question: str) -> Sequence[Found]:
        """All statements whose title is in the question."""
        return [
            Found(said.subject, {name: [value] for name, value in said.values.items()})
            for said in self._log
            if said.scope == scope and said.title in question
        ]

    def history(self, scope: str, subject: str, name: str) -> Sequence[Version]:
        """Every value of the field in the log."""
        mine = [said for said in self._log if (said.scope, said.subject) == (scope, subject) and name in said.values]
        return [Version(said.values[name], said.since, (said.id,)) for said in mine]

    def active(self, scope: str) -> Collection[str]:
        """All of them."""
        return {said.subject for said in self._log if said.scope == scope}
