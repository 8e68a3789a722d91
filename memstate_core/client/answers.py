"""What a server answers, typed. Keys that a newer server adds are passed over."""

from __future__ import annotations

from typing import Any

from msgspec import Struct


class Answer(Struct, frozen=True, kw_only=True):
    """The root of all shapes here: immutable, tolerant of keys that it does not know."""


class Explained(Answer, frozen=True):
    """What a score is made of."""

    score: float
    parts: dict[str, float]


class Neighbor(Answer, frozen=True):
    """A topic beside a candidate."""

    topic_id: str
    title: str | None
    kind: str
    direction: str
    id: str | None = None


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
    evidence_ids: list[str] = []
    summarises: int | None = None


class Rival(Answer, frozen=True):
    """Another value as of the same time as the current one."""

    value: Any
    valid_from: str | None = None
    provenance: str | None = None
    evidence_ids: list[str] = []


class CandidateField(Answer, frozen=True):
    """A field of a candidate."""

    name: str
    field_type: str | None
    ref_topic_id: str | None
    current: Revision
    conflict: list[Rival] = []
    history: list[Revision] = []


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
    fields: list[PendingField] = []
    pending: bool = True


class PendingTold(Answer, frozen=True):
    """How many observations of these scopes are accepted and not published, and whether all of them were looked at."""

    observations: int
    complete: bool


class Candidate(Answer, frozen=True):
    """A topic that may answer the question; one that no snapshot has yet is in the state `pending`."""

    topic_id: str
    title: str | None
    summary: str | None
    topic_kind: str | None
    scope: str
    salience: float | None
    failed_salience: float | None
    similarity: float | None
    state: str | None = None
    neighbors: list[Neighbor] = []
    fields: list[CandidateField] = []
    warnings: list[Warned] = []
    explain: Explained | None = None
    pending: list[PendingObservation] | None = None


class EvidenceFound(Answer, frozen=True):
    """A piece of evidence."""

    observation_id: str
    text: str | None
    observed_at: str
    topic_id: str | None
    score: float
    actor: str | None = None
    session_id: str | None = None
    explain: Explained | None = None
    pending: bool | None = None


class QueryAnswer(Answer, frozen=True):
    """The answer to a question, all of it from one snapshot but for what is marked as pending."""

    query: str
    candidates: list[Candidate]
    evidence: list[EvidenceFound]
    summary_text: str
    snapshot: str
    pending: PendingTold | None = None


class Citation(Answer, frozen=True):
    """Where line `n` comes from: a topic, its summary, one of its fields, or a piece of evidence (`kind`)."""

    n: int
    kind: str
    topic_id: str | None = None
    title: str | None = None
    scope: str | None = None
    field: str | None = None
    revision_id: str | None = None
    evidence_ids: list[str] | None = None
    observation_id: str | None = None
    observed_at: str | None = None


class ContextWarning(Answer, frozen=True):
    """What to beware of at line `n`."""

    n: int
    kind: str
    message: str
    field: str | None = None


class LeftOut(Answer, frozen=True):
    """How much the answer had and the text has not."""

    topic: int = 0
    evidence: int = 0
    summary: int = 0
    field: int = 0


class ContextAnswer(Answer, frozen=True):
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
    conflict: list[Rival] = []


class Link(Answer, frozen=True, rename={"from_": "from"}):
    """A link between two topics."""

    from_: str
    to: str
    kind: str
    valid_from: str | None = None
    valid_until: str | None = None
    evidence_ids: list[str] = []
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


class RunTold(Answer, frozen=True):
    """A run; `counts`, `checks` and `seconds` are None where it left no report."""

    run_id: str
    now: str
    shard: str
    snapshot: str
    state_hash: str
    counts: dict[str, int] | None
    totals: dict[str, int]
    checks: list[dict[str, Any]] | None = None
    seconds: dict[str, float] | None = None
    expected_false_merges: float | None = None


class RunsAnswer(Answer, frozen=True):
    """The last runs, newest first."""

    runs: list[RunTold]


class IngestAnswer(Answer, frozen=True):
    """Observations that are safe in the inbox; `topic_ids` has None where only the next run can tell."""

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


class FeedbackAnswer(Answer, frozen=True):
    """What was noted; the next run counts it."""

    topic_id: str
    fields: list[str] | None
    failed: bool
    at: str


class LastRun(Answer, frozen=True):
    """A run; `checks_passed` is None where its checks have not spoken, or it left no report."""

    run_id: str
    now: str
    checks_passed: bool | None = None


class RefusedSnapshot(Answer, frozen=True):
    """What CURRENT names and the server could not open, why, and since when."""

    snapshot: str
    detail: str
    since: str


class Readiness(Answer, frozen=True):
    """That something is served, and whether it is older than it should be; the rest for who sees every scope.

    `last_run` made what is served; `unpublished_run` began after it and is going on, or has failed.
    """

    status: str
    stale: bool = False
    snapshot: str | None = None
    age_seconds: float | None = None
    max_age_seconds: float | None = None
    last_run: LastRun | None = None
    unpublished_run: LastRun | None = None
    refused_snapshot: RefusedSnapshot | None = None


class Health(Answer, frozen=True):
    """The process answers."""

    status: str
