"""What callers get: the shapes of answers, for the API's description. Answers are encoded from plain values."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict


class _Answer(BaseModel):
    model_config = ConfigDict(extra="forbid", json_schema_extra={"additionalProperties": True})


class Explained(_Answer):
    """What a score is made of."""

    score: float
    parts: dict[str, float]


class Neighbor(_Answer):
    """A topic beside a candidate."""

    topic_id: str
    title: str | None
    kind: str
    direction: str


class Revision(_Answer):
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


class Rival(_Answer):
    """Another value as of the same time as the current one."""

    value: Any
    valid_from: str | None
    provenance: str | None
    evidence_ids: list[str]


class CandidateField(_Answer):
    """A field of a candidate."""

    name: str
    field_type: str | None
    ref_topic_id: str | None
    current: Revision
    conflict: list[Rival]
    history: list[Revision]


class Warned(_Answer):
    """What to beware of."""

    kind: str
    message: str
    field: str | None
    related_topic_id: str | None


class Candidate(_Answer):
    """A topic that may answer the question."""

    topic_id: str
    title: str | None
    summary: str | None
    topic_kind: str | None
    scope: str
    salience: float
    failed_salience: float
    similarity: float | None
    neighbors: list[Neighbor]
    fields: list[CandidateField]
    warnings: list[Warned]
    explain: Explained | None = None


class EvidenceFound(_Answer):
    """A piece of evidence."""

    observation_id: str
    text: str | None
    observed_at: str
    topic_id: str | None
    score: float
    actor: str | None
    session_id: str | None
    explain: Explained | None = None


class QueryAnswer(_Answer):
    """The answer to a question, all of it from one snapshot."""

    query: str
    candidates: list[Candidate]
    evidence: list[EvidenceFound]
    summary_text: str
    snapshot: str


class ListedTopic(_Answer):
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


class TopicsPage(_Answer):
    """A page of topics; `next_cursor` leads to the next one and is null on the last."""

    topics: list[ListedTopic]
    next_cursor: str | None
    snapshot: str


class TopicField(_Answer):
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


class TopicRecord(_Answer):
    """One topic."""

    id: str
    scope: str
    title: str | None
    summary: str | None
    topic_kind: str | None
    salience: float
    failed_salience: float
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
    snapshot: str


class RunTold(_Answer):
    """A run; `counts`, `checks` and `seconds` are null where it left no report."""

    run_id: str
    now: str
    shard: str
    snapshot: str
    state_hash: str
    counts: dict[str, int] | None
    totals: dict[str, int]
    checks: list[dict[str, Any]] | None
    seconds: dict[str, float] | None
    expected_false_merges: float | None


class RunsAnswer(_Answer):
    """The last runs, newest first."""

    runs: list[RunTold]


class IngestAnswer(_Answer):
    """Observations that are safe in the inbox; `topic_ids` has null where only the next run can tell."""

    accepted: int
    observation_ids: list[str]
    topic_ids: list[str | None]
    file: str


class FeedbackAnswer(_Answer):
    """What was noted; the next run counts it."""

    topic_id: str
    fields: list[str] | None
    failed: bool
    at: str


class LastRun(_Answer):
    """The run whose snapshot is served."""

    run_id: str
    now: str


class Readiness(_Answer):
    """What is served, how old it is in seconds, and which run made it."""

    status: str
    snapshot: str
    age_seconds: float
    last_run: LastRun


class Health(_Answer):
    """The process answers."""

    status: str


class ProblemDocument(BaseModel):
    """An error (RFC 9457); its type tells kinds apart."""

    type: str
    title: str
    status: int
    detail: str
    request_id: str | None = None
