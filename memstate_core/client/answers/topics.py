"""Topics as they are listed and read."""

from __future__ import annotations

from typing import Any

from msgspec import field

from memstate_core.client.answers.parts import Answer, PendingObservation, Revision, Rival, Warned


class ListedTopic(Answer, frozen=True):
    """A topic in a list."""

    topic_id: str
    scope: str
    title: str | None
    summary: str | None
    topic_kind: str | None
    salience: float
    failed_salience: float
    state: str
    created_at: str | None


class TopicsPage(Answer, frozen=True):
    """A page of topics; `next_cursor` leads to the next one and is None on the last."""

    topics: list[ListedTopic]
    next_cursor: str | None
    snapshot: str


class TopicField(Answer, frozen=True):
    """A field of a topic, newest revision first."""

    field_type: str | None
    ref_topic_id: str | None
    salience: float
    detached: bool
    history: list[Revision]
    conflict: list[Rival] = field(default_factory=list)


class Link(Answer, frozen=True, rename={"from_": "from"}):
    """A link between two topics."""

    from_: str
    to: str
    kind: str
    valid_from: str | None = None
    valid_until: str | None = None
    evidence_ids: list[str] = field(default_factory=list)
    detached: bool = False


class TopicRecord(Answer, frozen=True):
    """One topic."""

    id: str
    scope: str
    title: str | None
    summary: str | None
    topic_kind: str | None
    salience: float | None
    failed_salience: float | None
    state: str
    archived: bool
    pinned: bool
    merged_into: str | None
    created_at: str | None
    updated_at: str | None
    fields: dict[str, TopicField]
    edges: list[Link]
    warnings: list[Warned]
    snapshot: str
    stale: dict[str, Any] | None = None
    embedding_model: str | None = None
    text_hash: str | None = None
    topic_history: dict[str, list[Revision]] | None = None
    resolved_from: list[str] | None = None
    pending: list[PendingObservation] | None = None
