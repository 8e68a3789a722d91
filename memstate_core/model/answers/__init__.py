"""The answers of the HTTP API and the MCP tools, defined once for server and client.

The server sends plain values and describes them with schemas derived from these types
(`memstate_core.serve.response_models`); the client decodes into them. Which keys are always sent, and which an older
server may omit, is part of each declaration: see `memstate_core.model.answers.base`.
"""

from memstate_core.model.answers.base import Answer
from memstate_core.model.answers.health import (
    CheckoutState,
    FetchState,
    GraphCounts,
    GraphHealth,
    Health,
    LastRun,
    Readiness,
    RefusedSnapshot,
    ReplicaState,
    ReplicaWrites,
    RunRecord,
    RunsAnswer,
    SourceProblem,
)
from memstate_core.model.answers.parts import (
    ConflictingValue,
    PendingField,
    PendingObservation,
    Revision,
    TopicWarning,
)
from memstate_core.model.answers.problem import ProblemDocument
from memstate_core.model.answers.queries import (
    Candidate,
    CandidateField,
    Citation,
    ContextAnswer,
    ContextItem,
    ContextWarning,
    EvidenceHit,
    Explanation,
    Neighbor,
    OmittedCounts,
    PendingCount,
    QueryAnswer,
)
from memstate_core.model.answers.topics import (
    Edge,
    Fact,
    FactsPage,
    ListedResource,
    ListedTopic,
    ResourcesPage,
    TopicField,
    TopicRecord,
    TopicsPage,
)
from memstate_core.model.answers.writes import FeedbackAnswer, IngestAnswer

__all__ = [
    "Answer",
    "Candidate",
    "CandidateField",
    "CheckoutState",
    "Citation",
    "ConflictingValue",
    "ContextAnswer",
    "ContextItem",
    "ContextWarning",
    "Edge",
    "EvidenceHit",
    "Explanation",
    "Fact",
    "FactsPage",
    "FeedbackAnswer",
    "FetchState",
    "GraphCounts",
    "GraphHealth",
    "Health",
    "IngestAnswer",
    "LastRun",
    "ListedResource",
    "ListedTopic",
    "Neighbor",
    "OmittedCounts",
    "PendingCount",
    "PendingField",
    "PendingObservation",
    "ProblemDocument",
    "QueryAnswer",
    "Readiness",
    "RefusedSnapshot",
    "ReplicaState",
    "ReplicaWrites",
    "ResourcesPage",
    "Revision",
    "RunRecord",
    "RunsAnswer",
    "SourceProblem",
    "TopicField",
    "TopicRecord",
    "TopicWarning",
    "TopicsPage",
]
