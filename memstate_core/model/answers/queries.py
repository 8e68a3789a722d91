"""Answers to questions: candidates with evidence, or a context pack for a prompt with its citations."""

from __future__ import annotations

from msgspec import field

from memstate_core.model.answers.base import Answer, NullIfOlder, Sometimes
from memstate_core.model.answers.parts import ConflictingValue, MissingShard, PendingObservation, Revision, TopicWarning


class Explanation(Answer, frozen=True):
    """A score and the parts that it consists of."""

    score: float
    parts: dict[str, float]


class Neighbor(Answer, frozen=True):
    """A topic connected to a candidate by an edge; `id` repeats `topic_id`."""

    topic_id: str
    title: str | None
    kind: str
    direction: str
    id: NullIfOlder[str] = None


class CandidateField(Answer, frozen=True):
    """A field of a candidate."""

    name: str
    field_type: str | None
    ref_topic_id: str | None
    current: Revision
    conflict: list[ConflictingValue] = field(default_factory=list)
    history: list[Revision] = field(default_factory=list)


class Candidate(Answer, frozen=True):
    """A topic that may answer the question.

    If the request asks for pending data, `pending` lists unpublished observations that name the topic. A topic that
    no snapshot has yet is in the state `pending` and has no salience, fields or edges.
    """

    topic_id: str
    title: str | None
    summary: str | None
    topic_kind: str | None
    scope: str
    salience: float | None
    failed_salience: float | None
    similarity: float | None
    state: NullIfOlder[str] = None
    neighbors: list[Neighbor] = field(default_factory=list)
    fields: list[CandidateField] = field(default_factory=list)
    warnings: list[TopicWarning] = field(default_factory=list)
    explain: Sometimes[Explanation] = None
    pending: Sometimes[list[PendingObservation]] = None


class EvidenceHit(Answer, frozen=True):
    """A piece of evidence that matches; with `pending` true it is unpublished and its score is between 0 and 1.

    `replaced_by` is the last wording of a message that was edited; else, where a question asks for what holds now, the
    later observation of the same speaker that may have replaced it. `tool`, `status` and `path` are details of an
    event.
    """

    observation_id: str
    text: str | None
    observed_at: str
    topic_id: str | None
    score: float
    actor: str | None = None
    session_id: str | None = None
    replaced_by: Sometimes[str] = None
    kind: Sometimes[str] = None
    tool: Sometimes[str] = None
    status: Sometimes[str] = None
    path: Sometimes[str] = None
    explain: Sometimes[Explanation] = None
    pending: Sometimes[bool] = None


class PendingCount(Answer, frozen=True):
    """The number of unpublished observations in the queried scopes, and whether all of them were considered."""

    observations: int
    complete: bool


class QueryAnswer(Answer, frozen=True):
    """The answer to a question, entirely from one snapshot except for what is marked as pending."""

    query: str
    candidates: list[Candidate]
    evidence: list[EvidenceHit]
    summary_text: str
    snapshot: str
    pending: Sometimes[PendingCount] = None
    missing_shards: Sometimes[list[MissingShard]] = None


class Citation(Answer, frozen=True):
    """The source of line `n` (`kind`): a core block, session, topic, resource, summary, field or piece of evidence."""

    n: int
    kind: str
    topic_id: str | None = None
    title: Sometimes[str] = None
    scope: Sometimes[str] = None
    field: Sometimes[str] = None
    revision_id: Sometimes[str] = None
    evidence_ids: Sometimes[list[str]] = None
    observation_id: Sometimes[str] = None
    observed_at: Sometimes[str] = None
    uri: Sometimes[str] = None


class ContextItem(Answer, frozen=True):
    """A line of the text without its number (`content`), with the tokens of the line and of its warnings.

    The `score` is from 0 to 1 and compares what was found of different kinds; null for core blocks and sessions, which
    are not searched for.
    """

    kind: str
    content: str
    citation: Citation
    score: float | None
    tokens: int


class ContextWarning(Answer, frozen=True):
    """A warning about line `n`."""

    n: int
    kind: str
    message: str
    field: str | None = None


class OmittedCounts(Answer, frozen=True):
    """How many items of the answer did not fit the budget, by kind."""

    core: int = 0
    session: int = 0
    topic: int = 0
    resource: int = 0
    evidence: int = 0
    summary: int = 0
    field: int = 0


class OmittedBlock(Answer, frozen=True):
    """A core block or session that did not fit the budget, and the tokens of its lines."""

    topic_id: str
    title: str
    scope: str
    tokens: int


class RecallWarning(Answer, frozen=True):
    """What speaks against a cited topic (`target`), and the topics or observations behind it.

    Its `kind` is citation_missing, temporal_contradiction, temporal_supersession, branch_drift, commit_drift,
    file_missing or file_hash_mismatch, its `severity` info or warning. Equal warnings have equal ids.
    """

    id: str
    kind: str
    severity: str
    target: str
    message: str
    related_ids: list[str]


class VerificationWarning(Answer, frozen=True):
    """The latest record of a check of an item of a cited topic, if it says other than `passed`."""

    check: str
    target: str
    status: str
    message: str
    topic_id: str
    checked_at: str | None


class ContextAnswer(Answer, frozen=True):
    """A text for a prompt; its `tokens`, as counted by `counted_by`, never exceed the budget."""

    query: str
    policy: str
    budget: int
    tokens: int
    counted_by: str
    text: str
    items: list[ContextItem]
    citations: list[Citation]
    topics: list[str]
    warnings: list[ContextWarning]
    left_out: OmittedCounts
    core_left_out: list[OmittedBlock]
    session_left_out: list[OmittedBlock]
    recall_warnings: list[RecallWarning]
    verification_warnings: list[VerificationWarning]
    snapshot: str
    missing_shards: Sometimes[list[MissingShard]] = None
