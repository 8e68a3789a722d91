"""The trajectory: turns drawn from a seed, grouped into days that each end with a night.

A turn is one act of a tenant: statements in one batch, or one access. Kinds of turns and how often each is drawn are in
`WEIGHTS`. The draws consult only what was drawn before; what is true after a turn is the business of `truth`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final

from memstate_core.conformance.system import Statement

SCOPES: Final = ("user:ada", "user:bo", "project:mill")
TURNS_A_DAY: Final = 25
DAYS_APART: Final = 7
BEGIN: Final = datetime(2024, 1, 8, 8, tzinfo=UTC)


class Kind(StrEnum):
    """What a turn does."""

    NEW = "new subject"
    DEPENDENT = "dependent subject"
    TWINS = "twins"
    UPDATE = "update"
    LATE = "late"
    CONTRADICTION = "contradiction"
    RESTATEMENT = "restatement"
    RETRACTION = "retraction"
    DUPLICATE = "duplicate"
    VIOLATION = "violation"
    ACCESS = "access"


WEIGHTS: Final[Mapping[Kind, int]] = {
    Kind.NEW: 13,
    Kind.DEPENDENT: 9,
    Kind.TWINS: 3,
    Kind.UPDATE: 18,
    Kind.LATE: 12,
    Kind.CONTRADICTION: 6,
    Kind.RESTATEMENT: 6,
    Kind.RETRACTION: 6,
    Kind.DUPLICATE: 8,
    Kind.VIOLATION: 6,
    Kind.ACCESS: 13,
}


@dataclass(frozen=True)
class Turn:
    """One act.

    Attributes:
        number: its number, from 1.
        kind: what it does.
        at: when.
        scope: the tenant.
        statements: the batch; empty for an access.
        accessed: the subject of an access.
    """

    number: int
    kind: Kind
    at: datetime
    scope: str
    statements: tuple[Statement, ...] = ()
    accessed: str | None = None

    @property
    def breaks_rules(self) -> bool:
        """Whether the batch has to be refused."""
        return self.kind is Kind.VIOLATION


@dataclass(frozen=True)
class Day:
    """The turns of a day, and the time of the night after it."""

    turns: tuple[Turn, ...]
    night: datetime


@dataclass(frozen=True)
class Trajectory:
    """A whole scenario.

    Attributes:
        seed: what it was drawn from.
        days: its days.
        bound: how many subjects of a scope may be active.
        twins: pairs by scope: the first is accessed again and again, the second never.
    """

    seed: int
    days: tuple[Day, ...]
    bound: int
    twins: Mapping[str, tuple[tuple[str, str], ...]]

    @property
    def turns(self) -> int:
        """How many turns it has."""
        return sum(len(day.turns) for day in self.days)


def trajectory(turns: int = 500, seed: int = 0) -> Trajectory:
    """Draws a trajectory.

    Args:
        turns: how many turns, at least 1.
        seed: the same seed and number of turns give the same trajectory.
    """
    from memstate_core.conformance.draw import Draw

    draw = Draw(seed)
    days: list[Day] = []
    for first in range(0, turns, TURNS_A_DAY):
        draw.begin_day()
        begin = BEGIN + timedelta(days=DAYS_APART * len(days))
        numbers = range(first + 1, min(first + TURNS_A_DAY, turns) + 1)
        drawn = tuple(draw.turn(number, begin + timedelta(minutes=20 * place)) for place, number in enumerate(numbers))
        days.append(Day(drawn, begin + timedelta(hours=14)))
    twins = {scope: tuple(draw.twins[scope]) for scope in SCOPES}
    return Trajectory(seed, tuple(days), max(4, turns // 20), twins)
