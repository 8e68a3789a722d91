"""What several answers are made of: their root, revisions of fields, warnings, and what is not published yet."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict


class Answer(BaseModel):
    """The root of all shapes here: this server sends no other keys, and the description leaves room for more."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"additionalProperties": True})


class Revision(Answer):
    """One value of a field over a stretch of valid time; a summary of older ones says what it `summarises`."""

    id: str
    value: Any
    valid_from: str | None
    recorded_at: str | None
    provenance: str | None
    why_changed: str | None
    impact_expected: str | None
    confidence: float | None
    evidence_ids: list[str]
    summarises: int | None = None


class Rival(Answer):
    """Another value as of the same time as the current one."""

    value: Any
    valid_from: str | None
    provenance: str | None
    evidence_ids: list[str]


class Warned(Answer):
    """What to beware of."""

    kind: str
    message: str
    field: str | None
    related_topic_id: str | None


class PendingField(Answer):
    """A value that is accepted and not published yet."""

    name: str
    value: Any
    field_type: str | None
    valid_from: str | None
    why_changed: str | None
    confidence: float | None


class PendingObservation(Answer):
    """An observation that names a topic and is not published yet; `pending` is true."""

    observation_id: str
    topic_id: str | None
    observed_at: str
    kind: str | None
    actor: str | None
    session_id: str | None
    text: str | None
    title: str | None
    summary: str | None
    topic_kind: str | None
    fields: list[PendingField]
    pending: bool
