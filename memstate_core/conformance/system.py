"""The interface of a memory system under test, and the records that it takes and gives.

An adapter has `name`, `ingest`, `advance` and `ask`. The methods of `OPTIONAL` may be missing: what needs them then
counts as not held, and is no error.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Protocol

Value = str | int | None
"""The value of a field; None means that the field has none any more."""

FIELD_TYPES: Final[Mapping[str, str]] = {"owner": "string", "level": "int", "status": "string"}
"""The fields of the scenario, each with its declared type."""

OPTIONAL: Final = ("lookup", "history", "review", "feedback", "active", "strength")


@dataclass(frozen=True)
class Statement:
    """One observation: what a source says about a subject.

    Attributes:
        id: its id, unique within the scope; the same id with the same content is the same statement again.
        scope: the tenant, as `TYPE:ID`.
        subject: the stable key of what it is about, within the scope. Tenants use the same keys for different things.
        title: the subject's name, as questions use it.
        values: values by field; None withdraws the value of a field.
        observed_at: when the source noticed it.
        valid_from: since when the values hold; None stands for `observed_at`.
        depends_on: subjects of the scope that this one builds on, so that it needs review when they change.
        mentions: subjects of the scope that it only mentions.
    """

    id: str
    scope: str
    subject: str
    title: str
    values: Mapping[str, Value]
    observed_at: datetime
    valid_from: datetime | None = None
    depends_on: tuple[str, ...] = ()
    mentions: tuple[str, ...] = ()

    @property
    def since(self) -> datetime:
        """Since when the values hold."""
        return self.valid_from or self.observed_at


@dataclass(frozen=True)
class Found:
    """What an answer says about one subject: every value that it gives for each field."""

    subject: str
    values: Mapping[str, Sequence[Value]]


@dataclass(frozen=True)
class Version:
    """One value of a field's history, since when it holds, and the ids of the statements that it comes from."""

    value: Value
    valid_from: datetime
    sources: tuple[str, ...] = ()


@dataclass(frozen=True)
class Limits:
    """The policy of the scenario.

    Attributes:
        active: how many subjects of a scope may be active at most; nothing leaves a scope that has no more.
    """

    active: int


class Refused(Exception):
    """The system refuses a batch as a whole."""


@dataclass(frozen=True)
class NotOffered:
    """The answer for a method that the adapter does not have."""

    method: str = field(default="")

    def __str__(self) -> str:
        return f"the system offers no {self.method}"


class System(Protocol):
    """A memory system behind an adapter.

    Times are logical and in UTC. The scenario writes and accesses for a day, calls `advance`, and asks afterwards, so
    that systems which work in batches have seen everything.
    """

    name: str

    def ingest(self, batch: Sequence[Statement]) -> None:
        """Takes a batch, all or none.

        Raises:
            Refused: it breaks a rule: a value that does not fit its field's type, an id used again for other content,
                or a time in the far future.
        """

    def advance(self, now: datetime) -> None:
        """Moves the clock to a later time, and does what is due: consolidation, review, forgetting."""

    def ask(self, scope: str, question: str) -> Sequence[Found]:
        """Answers a question as an agent would get it by default: the subjects that match and their current values."""


class FullSystem(System, Protocol):
    """The optional methods beside those of `System`."""

    def lookup(self, scope: str, subject: str) -> Found | None:
        """The current values of a subject on explicit request, active or not; without it, `ask` by title is used."""

    def history(self, scope: str, subject: str, name: str) -> Sequence[Version]:
        """All values that a field has had, in any order, with the statements behind each."""

    def review(self, scope: str) -> Collection[str]:
        """The subjects that wait for review since something that they build on has changed."""

    def feedback(self, scope: str, subject: str, at: datetime) -> None:
        """Notes that a subject was retrieved and useful."""

    def active(self, scope: str) -> Collection[str]:
        """The subjects that default answers consider."""

    def strength(self, scope: str, subject: str) -> float | None:
        """How strongly a subject is remembered; only comparisons within a system count."""
