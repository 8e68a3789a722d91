"""What was checked, and the scores made of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

CONDITIONS: Final = {
    "C1": "query soundness",
    "C2": "transition soundness",
    "C3": "dependency consistency",
    "C4": "provenance preservation",
    "C5": "bounded active state",
    "C6": "retrieval-induced adaptation",
}
_EXAMPLES = 3
_SHOWN = 200


@dataclass(frozen=True)
class Check:
    """One question that the trajectory put to the system.

    Attributes:
        condition: C1 to C6.
        kind: what was checked.
        turn: the turn that it judges, or the last one before the night.
        about: the scope, or the scope and the subject.
        problem: what is wrong; None if the condition held.
    """

    condition: str
    kind: str
    turn: int
    about: str
    problem: str | None = None


@dataclass
class Tally:
    """How often something was checked and held."""

    checked: int = 0
    held: int = 0

    def add(self, held: bool) -> None:
        """Counts a check."""
        self.checked += 1
        self.held += held

    def document(self) -> dict[str, int]:
        """As JSON."""
        return {"checked": self.checked, "held": self.held}


@dataclass
class Condition:
    """The checks of one condition: in all, by kind, and the first failures of each kind."""

    tally: Tally = field(default_factory=Tally)
    kinds: dict[str, Tally] = field(default_factory=dict)
    failures: list[Check] = field(default_factory=list)

    @property
    def score(self) -> float:
        """The share of checks that held; 0 without any."""
        return self.tally.held / self.tally.checked if self.tally.checked else 0.0

    def add(self, check: Check) -> None:
        """Counts a check."""
        held = check.problem is None
        self.tally.add(held)
        self.kinds.setdefault(check.kind, Tally()).add(held)
        if not held and sum(each.kind == check.kind for each in self.failures) < _EXAMPLES:
            self.failures.append(check)

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "score": round(self.score, 4),
            **self.tally.document(),
            "kinds": {kind: tally.document() for kind, tally in sorted(self.kinds.items())},
            "examples": [
                {"turn": each.turn, "kind": each.kind, "about": each.about, "problem": (each.problem or "")[:_SHOWN]}
                for each in self.failures
            ],
        }


class Report:
    """The scores of one system.

    Attributes:
        system: its name.
        conditions: the counts by condition, C1 to C6.
    """

    def __init__(self, system: str) -> None:
        self.system = system
        self.conditions = {name: Condition() for name in CONDITIONS}

    def add(self, checks: Iterable[Check]) -> None:
        """Counts checks."""
        for check in checks:
            self.conditions[check.condition].add(check)

    @property
    def least(self) -> float:
        """The lowest score of a condition."""
        return min(each.score for each in self.conditions.values())

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "system": self.system,
            "least": round(self.least, 4),
            "conditions": {name: each.document() for name, each in self.conditions.items()},
        }
