"""What several answers are made of: their root, revisions of fields, warnings, and what is not published yet."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field


class Answer(Struct, frozen=True, kw_only=True):
    """The root of all shapes here: immutable, tolerant of keys that it does not know."""


class Revision(Answer, frozen=True):
    """One value of a field over a stretch of valid time; a summary of older ones says what it `summarises`."""

    id: str
    value: Any
    valid_from: str | None = None
    recorded_at: str | None = None
    provenance: str | None = None
    why_changed: str | None = None
    impact_expected: str | None = None
    confidence: float | None = None
    evidence_ids: list[str] = field(default_factory=list)
    summarises: int | None = None


class Rival(Answer, frozen=True):
    """Another value as of the same time as the current one."""

    value: Any
    valid_from: str | None = None
    provenance: str | None = None
    evidence_ids: list[str] = field(default_factory=list)


class Warned(Answer, frozen=True):
    """What to beware of."""

    kind: str
    message: str
    field: str | None = None
    related_topic_id: str | None = None


class PendingField(Answer, frozen=True):
    """A value that is accepted and not published yet."""

    name: str
    value: Any
    field_type: str | None = None
    valid_from: str | None = None
    why_changed: str | None = None
    confidence: float | None = None


class PendingObservation(Answer, frozen=True):
    """An observation that names a topic and is not published yet."""

    observation_id: str
    topic_id: str | None
    observed_at: str
    kind: str | None = None
    actor: str | None = None
    session_id: str | None = None
    text: str | None = None
    title: str | None = None
    summary: str | None = None
    topic_kind: str | None = None
    fields: list[PendingField] = field(default_factory=list)
    pending: bool = True
