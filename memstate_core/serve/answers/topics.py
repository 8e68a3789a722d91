"""Topics as they are listed and read."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from memstate_core.serve.answers.parts import Answer, PendingObservation, Revision, Rival, Warned


class ListedTopic(Answer):
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


class TopicsPage(Answer):
    """A page of topics; `next_cursor` leads to the next one and is null on the last."""

    topics: list[ListedTopic]
    next_cursor: str | None
    snapshot: str


class TopicField(Answer):
    """A field of a topic, newest revision first."""

    field_type: str | None
    ref_topic_id: str | None
    salience: float
    detached: bool
    history: list[Revision]
    conflict: list[Rival]


class Link(BaseModel):
    """A link between two topics (`from`, `to`)."""

    kind: str
    valid_from: str | None
    valid_until: str | None
    evidence_ids: list[str]
    detached: bool


class TopicRecord(Answer):
    """One topic; one that no snapshot has yet is in the state `pending` and has nothing but what is pending."""

    id: str
    scope: str
    title: str | None
    summary: str | None
    topic_kind: str | None
    salience: float | None
    failed_salience: float | None
    embedding_model: str | None
    text_hash: str | None
    state: str
    archived: bool
    pinned: bool
    merged_into: str | None
    created_at: str | None
    updated_at: str | None
    fields: dict[str, TopicField]
    topic_history: dict[str, list[Revision]] | None = None
    edges: list[Link]
    stale: dict[str, Any] | None
    warnings: list[Warned]
    resolved_from: list[str] | None = None
    pending: list[PendingObservation] | None = None
    snapshot: str
