"""What a benchmark of the runner returns: figures, each with the target it is compared with."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Measure:
    """One figure.

    Attributes:
        name: what was measured.
        value: the figure; None where it could not be measured.
        unit: its unit; `times` for a ratio within one run.
        least: the least value wanted, if there is one.
        most: the greatest value wanted, if there is one.
        problem: why it could not be measured, if so.
    """

    name: str
    value: float | None
    unit: str
    least: float | None = None
    most: float | None = None
    problem: str = ""

    @property
    def is_met(self) -> bool | None:
        """Whether the target is met; None without one, and where nothing was measured."""
        if self.value is None or (self.least is None and self.most is None):
            return None
        return (self.least is None or self.value >= self.least) and (self.most is None or self.value <= self.most)

    @property
    def shown(self) -> str:
        """The figure as text, or why there is none."""
        return self.problem if self.value is None else f"{self.value:.2f}"

    @property
    def target(self) -> str:
        """The target as text."""
        return f"at least {self.least:g}" if self.least is not None else f"at most {self.most:g}" if self.most else ""
