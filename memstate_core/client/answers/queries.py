"""Answers to questions: candidates and evidence, or a text for a prompt with its citations."""

from __future__ import annotations

from msgspec import field

from memstate_core.client.answers.parts import Answer, PendingObservation, Revision, Rival, Warned


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


class CandidateField(Answer, frozen=True):
    """A field of a candidate."""

    name: str
    field_type: str | None
    ref_topic_id: str | None
    current: Revision
    conflict: list[Rival] = field(default_factory=list)
    history: list[Revision] = field(default_factory=list)


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
    neighbors: list[Neighbor] = field(default_factory=list)
    fields: list[CandidateField] = field(default_factory=list)
    warnings: list[Warned] = field(default_factory=list)
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


class PendingTold(Answer, frozen=True):
    """How many observations of these scopes are accepted and not published, and whether all of them were looked at."""

    observations: int
    complete: bool


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
