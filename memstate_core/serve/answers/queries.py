"""Answers to questions: candidates and evidence, or a text for a prompt with its citations."""

from __future__ import annotations

from memstate_core.serve.answers.parts import Answer, PendingObservation, Revision, Rival, Warned


class Explained(Answer):
    """What a score is made of."""

    score: float
    parts: dict[str, float]


class Neighbor(Answer):
    """A topic beside a candidate; `id` says again what `topic_id` says."""

    topic_id: str
    id: str
    title: str | None
    kind: str
    direction: str


class CandidateField(Answer):
    """A field of a candidate."""

    name: str
    field_type: str | None
    ref_topic_id: str | None
    current: Revision
    conflict: list[Rival]
    history: list[Revision]


class Candidate(Answer):
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


class EvidenceFound(Answer):
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


class PendingTold(Answer):
    """How many observations of these scopes are accepted and not published, and whether all of them were looked at."""

    observations: int
    complete: bool


class QueryAnswer(Answer):
    """The answer to a question, all of it from one snapshot but for what is marked as pending."""

    query: str
    candidates: list[Candidate]
    evidence: list[EvidenceFound]
    summary_text: str
    snapshot: str
    pending: PendingTold | None = None


class Citation(Answer):
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


class ContextWarning(Answer):
    """What to beware of at line `n`."""

    n: int
    kind: str
    message: str
    field: str | None


class LeftOut(Answer):
    """How much the answer had and the text has not."""

    topic: int
    evidence: int
    summary: int
    field: int


class ContextAnswer(Answer):
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
