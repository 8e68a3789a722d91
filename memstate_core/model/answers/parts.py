"""Types shared by several answers: revisions of fields, warnings and unpublished observations."""

from __future__ import annotations

from typing import Any

from msgspec import field

from memstate_core.model.answers.base import Answer, Sometimes


class Revision(Answer, frozen=True):
    """One value of a field over a period of valid time.

    A revision that summarises older ones has their number in `summarises`.
    """

    id: str
    value: Any
    valid_from: str | None = None
    recorded_at: str | None = None
    provenance: str | None = None
    why_changed: str | None = None
    impact_expected: str | None = None
    confidence: float | None = None
    evidence_ids: list[str] = field(default_factory=list)
    summarises: Sometimes[int] = None


class ConflictingValue(Answer, frozen=True):
    """Another value with the same valid time as the current one."""

    value: Any
    valid_from: str | None = None
    provenance: str | None = None
    evidence_ids: list[str] = field(default_factory=list)


class TopicWarning(Answer, frozen=True):
    """A reason to treat a topic or one of its fields with caution."""

    kind: str
    message: str
    field: str | None = None
    related_topic_id: str | None = None


class PendingField(Answer, frozen=True):
    """A field value that is accepted but not published yet."""

    name: str
    value: Any
    field_type: str | None = None
    valid_from: str | None = None
    why_changed: str | None = None
    confidence: float | None = None


class PendingObservation(Answer, frozen=True):
    """An observation that names a topic and is not published yet; `pending` is always true."""

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


class MissingShard(Answer, frozen=True):
    """A shard that is missing from an answer, because its served snapshot is damaged, and what to do."""

    shard: str
    snapshot: str
    message: str
