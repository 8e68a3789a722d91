"""The verdict on one condition, and the form of violations."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import polars as pl

from memstate_core.model.frames import Schema, empty

VIOLATIONS: Schema = {"subject": pl.String, "problem": pl.String}


@dataclass(frozen=True)
class Check:
    """The verdict on one condition.

    Attributes:
        name: C1 to C6.
        violations: columns VIOLATIONS; empty when the condition holds.
        notes: parts of the condition that could not be checked, and why.
    """

    name: str
    violations: pl.DataFrame
    notes: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether the condition holds."""
        return self.violations.is_empty()

    @property
    def detail(self) -> str:
        """The first violations, or the parts that could not be checked."""
        found = [f"{subject}: {problem}" for subject, problem in self.violations.head(5).rows()]
        more = self.violations.height - len(found)
        return "; ".join([*found, *([f"{more} more"] if more else []), *self.notes])


def violating(rows: pl.DataFrame, subject: str, problem: str) -> pl.DataFrame:
    """One violation for each distinct subject (columns VIOLATIONS)."""
    if rows.is_empty():
        return empty(VIOLATIONS)
    return rows.select(subject=pl.col(subject), problem=pl.lit(problem)).unique().sort("subject")


def check(name: str, found: Iterable[pl.DataFrame], notes: Iterable[str] = ()) -> Check:
    """The verdict that follows from lists of violations."""
    return Check(name, pl.concat([empty(VIOLATIONS), *found]), tuple(notes))
