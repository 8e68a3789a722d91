"""The system under test as the checks ask it: optional methods, and each question once a night."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeVar

from memstate_core.conformance.system import Found, NotOffered, System, Value, Version

T = TypeVar("T")


class Asked:
    """A system between two nights. Answers are kept until `forget`, so that the checks may ask freely."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._known: dict[tuple[Any, ...], Any] = {}

    def forget(self) -> None:
        """Drops what was asked before; the system has moved on."""
        self._known.clear()

    def offers(self, method: str) -> bool:
        """Whether the system has an optional method."""
        return callable(getattr(self._system, method, None))

    def answers(self, scope: str, title: str) -> Sequence[Found]:
        """The default answer about a subject by its title."""
        return self._once(("ask", scope, title), lambda: self._system.ask(scope, f"What is known about {title}?"))

    def lookup(self, scope: str, subject: str, title: str) -> Found | None:
        """A subject on explicit request; by a default answer where the system has nothing else."""
        if not self.offers("lookup"):
            return together(self.answers(scope, title), subject)
        found = self._optional("lookup", scope, subject)
        return found if isinstance(found, Found) else None

    def history(self, scope: str, subject: str, name: str) -> Sequence[Version] | NotOffered:
        """The history of a field."""
        found: Sequence[Version] | NotOffered = self._optional("history", scope, subject, name)
        return found

    def review(self, scope: str) -> Collection[str] | NotOffered:
        """What waits for review."""
        found: Collection[str] | NotOffered = self._optional("review", scope)
        return found

    def active(self, scope: str) -> Collection[str] | NotOffered:
        """What default answers consider."""
        found: Collection[str] | NotOffered = self._optional("active", scope)
        return found

    def strength(self, scope: str, subject: str) -> float | NotOffered | None:
        """How strongly a subject is remembered."""
        found: float | NotOffered | None = self._optional("strength", scope, subject)
        return found

    def _optional(self, method: str, *arguments: str) -> Any:
        if not self.offers(method):
            return NotOffered(method)
        return self._once((method, *arguments), lambda: getattr(self._system, method)(*arguments))

    def _once(self, key: tuple[Any, ...], ask: Callable[[], T]) -> T:
        if key not in self._known:
            self._known[key] = ask()
        found: T = self._known[key]
        return found


def together(answers: Sequence[Found], subject: str) -> Found | None:
    """All that several answers say about one subject; None if they say nothing."""
    mine = [each for each in answers if each.subject == subject]
    values: dict[str, list[Value]] = {}
    for each in mine:
        for name, given in each.values.items():
            values.setdefault(name, []).extend(given)
    return Found(subject, values) if mine else None
