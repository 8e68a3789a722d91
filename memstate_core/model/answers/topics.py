"""Topics as listed and as read one by one."""

from __future__ import annotations

from typing import Any

from msgspec import field

from memstate_core.model.answers.base import Answer, Sometimes
from memstate_core.model.answers.parts import ConflictingValue, MissingShard, PendingObservation, Revision, TopicWarning


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
    """A page of topics; `next_cursor` fetches the next page and is null on the last one."""

    topics: list[ListedTopic]
    next_cursor: str | None
    snapshot: str
    missing_shards: Sometimes[list[MissingShard]] = None


class TopicField(Answer, frozen=True):
    """A field of a topic, newest revision first."""

    field_type: str | None
    ref_topic_id: str | None
    salience: float
    detached: bool
    history: list[Revision]
    conflict: list[ConflictingValue] = field(default_factory=list)


class Edge(Answer, frozen=True, rename={"from_": "from"}):
    """A typed edge between two topics."""

    from_: str
    to: str
    kind: str
    valid_from: str | None = None
    valid_until: str | None = None
    evidence_ids: list[str] = field(default_factory=list)
    detached: bool = False


class TopicRecord(Answer, frozen=True):
    """One topic; one that no snapshot has yet is in the state `pending` and has nothing but its pending data."""

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
    edges: list[Edge]
    warnings: list[TopicWarning]
    snapshot: str
    embedding_model: str | None = None
    text_hash: str | None = None
    stale: dict[str, Any] | None = None
    topic_history: Sometimes[dict[str, list[Revision]]] = None
    resolved_from: Sometimes[list[str]] = None
    pending: Sometimes[list[PendingObservation]] = None


class Fact(Answer, frozen=True):
    """A fact: a value of a field, or a typed edge.

    `object` is the value, or the title of the other topic; `object_id` the topic that either refers to. `contradicted`
    facts have rivals as of the same time, up to `valid_until` where they have ended. `source_event_ids` are the
    observations that stated it.
    """

    scope: str
    subject: str | None
    subject_id: str
    predicate: str
    object: Any
    object_id: str | None
    confidence: float | None
    valid_from: str | None
    valid_until: str | None
    contradicted: bool
    source_event_ids: list[str]


class ListedResource(Answer, frozen=True):
    """A workspace resource; `children` counts those that name it as parent, `characters` those of its content.

    `content` is null unless asked for. `updated_at` is since when the newest of its fields holds.
    """

    scope: str
    topic_id: str
    uri: str
    kind: str
    title: str
    parent_uri: str | None
    children: int
    characters: int
    content: str | None
    updated_at: str | None
    evidence_ids: list[str]


class ResourcesPage(Answer, frozen=True):
    """A page of resources by scope and URI; `next_cursor` fetches the next page and is null on the last one."""

    resources: list[ListedResource]
    next_cursor: str | None
    snapshot: str
    missing_shards: Sometimes[list[MissingShard]] = None


class FactsPage(Answer, frozen=True):
    """A page of facts; `next_cursor` fetches the next page and is null on the last one."""

    facts: list[Fact]
    next_cursor: str | None
    snapshot: str
    missing_shards: Sometimes[list[MissingShard]] = None
