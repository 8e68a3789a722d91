"""The verdict on one gate, and the names of the gates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from memstate_core.policy.sections.gates import Severity

GATES = {
    "expected_false_merges": "few of the night's merges are wrong by their own probabilities",
    "shrinkage": "active topics and evidence served do not fall by more than the policy explains",
    "growth": "active topics and evidence served do not multiply in one night",
    "quarantine_share": "few of the rows read since the last report were refused",
    "scope_vanished": "every scope with active topics still has some, unless an unchanged policy archived them",
    "recall": "questions find what they found in the served snapshot",
    "duration": "the night takes about as long as past nights",
}
"""What holds where a gate passes, by its name."""


@dataclass(frozen=True)
class Verdict:
    """The verdict on one gate.

    Attributes:
        gate: its name.
        severity: what its failure does.
        passed: whether the night is within its limits.
        found: what was measured.
        expected: the limit, with the key that sets it.
        look_at: what to look at where it fails.
        accepted: who let its failure through in this run, and why.
    """

    gate: str
    severity: Severity
    passed: bool
    found: str
    expected: str
    look_at: str
    accepted: str | None = None

    @property
    def is_refusing(self) -> bool:
        """Whether the night must not be published."""
        return not self.passed and self.severity == "error" and self.accepted is None

    @property
    def rank(self) -> str:
        """The severity as Dagster and reports name it; an accepted failure warns."""
        return "ERROR" if self.severity == "error" and self.accepted is None else "WARN"

    def to_json(self) -> dict[str, Any]:
        """The verdict as a report holds it."""
        accepted = "" if self.accepted is None else f"; accepted by {self.accepted}"
        return {
            "name": self.gate,
            "passed": self.passed,
            "severity": self.rank,
            "detail": f"{self.found}; expected {self.expected}{accepted}",
            "found": self.found,
            "expected": self.expected,
            "look_at": self.look_at,
            "accepted": self.accepted,
        }
