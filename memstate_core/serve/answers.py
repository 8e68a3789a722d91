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
    """A topic beside a candidate; `id` says again what `topic_id` says."""

    topic_id: str
    id: str
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


class PendingField(_Answer):
    """A value that is accepted and not published yet."""

    name: str
    value: Any
    field_type: str | None
    valid_from: str | None
    why_changed: str | None
    confidence: float | None


class PendingObservation(_Answer):
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


class PendingTold(_Answer):
    """How many observations of these scopes are accepted and not published, and whether all of them were looked at."""

    observations: int
    complete: bool


class Candidate(_Answer):
    """A topic that may answer the question.

    With `pending` asked for, observations that name it and are not published yet stand under `pending`, and a topic
    that no snapshot has yet is in the state `pending`: it has no salience, fields or links of its own.
    """

    topic_id: str
    title: str | None
    summary: str | None
    topic_kind: str | None
    scope: str
    state: str
    salience: float | None
    failed_salience: float | None
    similarity: float | None
    neighbors: list[Neighbor]
    fields: list[CandidateField]
    warnings: list[Warned]
    explain: Explained | None = None
    pending: list[PendingObservation] | None = None


class EvidenceFound(_Answer):
    """A piece of evidence. Where `pending` is true it is not published yet, and its score lies between 0 and 1."""

    observation_id: str
    text: str | None
    observed_at: str
    topic_id: str | None
    score: float
    actor: str | None
    session_id: str | None
    explain: Explained | None = None
    pending: bool | None = None


class QueryAnswer(_Answer):
    """The answer to a question, all of it from one snapshot but for what is marked as pending."""

    query: str
    candidates: list[Candidate]
    evidence: list[EvidenceFound]
    summary_text: str
    snapshot: str
    pending: PendingTold | None = None


class Citation(_Answer):
    """Where line `n` comes from: a topic, its summary, one of its fields, or a piece of evidence (`kind`)."""

    n: int
    kind: str
    topic_id: str | None
    title: str | None = None
    scope: str | None = None
    field: str | None = None
    revision_id: str | None = None
    evidence_ids: list[str] | None = None
    observation_id: str | None = None
    observed_at: str | None = None


class ContextWarning(_Answer):
    """What to beware of at line `n`."""

    n: int
    kind: str
    message: str
    field: str | None


class LeftOut(_Answer):
    """How much the answer had and the text has not."""

    topic: int
    evidence: int
    summary: int
    field: int


class ContextAnswer(_Answer):
    """A text for a prompt: `tokens`, as `counted_by` counts, are never more than the budget."""

    query: str
    budget: int
    tokens: int
    counted_by: str
    text: str
    citations: list[Citation]
    topics: list[str]
    warnings: list[ContextWarning]
    left_out: LeftOut
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
    """Observations that are safe in the inbox; `topic_ids` has null where only the next run can tell.

    The other keys are there for an observation that came alone: what of it was taken (`applied`; published by the next
    run), the ids of its values' revisions by field, served topics like its title and summary, and keys that have no
    meaning here and are kept with the evidence (`ignored`).
    """

    accepted: int
    observation_ids: list[str]
    topic_ids: list[str | None]
    file: str
    observation_id: str | None = None
    topic_id: str | None = None
    applied: list[str] | None = None
    version_ids: dict[str, str] | None = None
    similar_topic_ids: list[str] | None = None
    ignored: list[str] | None = None


class FeedbackAnswer(_Answer):
    """What was noted; the next run counts it."""

    topic_id: str
    fields: list[str] | None
    failed: bool
    at: str


class LastRun(_Answer):
    """A run; `checks_passed` is null where its checks have not spoken, or it left no report."""

    run_id: str
    now: str
    checks_passed: bool | None


class RefusedSnapshot(_Answer):
    """What CURRENT names and the server could not open, why, and since when."""

    snapshot: str
    detail: str
    since: str


class Readiness(_Answer):
    """That something is served, and whether it is older than it should be; the rest for who sees every scope.

    `last_run` made what is served; `unpublished_run` began after it and is going on, or has failed.
    """

    status: str
    stale: bool
    snapshot: str | None = None
    age_seconds: float | None = None
    max_age_seconds: float | None = None
    last_run: LastRun | None = None
    unpublished_run: LastRun | None = None
    refused_snapshot: RefusedSnapshot | None = None


class Health(_Answer):
    """The process answers."""

    status: str


class GraphCounts(_Answer):
    """How much is served in the scopes that the caller sees."""

    scopes: int
    topics: int
    fields: int
    edges: int
    evidence: int


class GraphHealth(_Answer):
    """A graph is served, by which store, from which file of a snapshot; more for callers who see something."""

    status: str
    backend: str
    path: str
    snapshot: str | None = None
    counts: GraphCounts | None = None


class ProblemDocument(BaseModel):
    """An error (RFC 9457); its type tells kinds apart."""

    type: str
    title: str
    status: int
    detail: str
    request_id: str | None = None
