"""What a server answers, typed. Keys that a newer server adds are passed over.

The shapes are those of `memstate_core.serve.answers`, which says which keys a server of this version always sends;
here a key that can be done without has a default, so that older servers are understood too.
"""

from memstate_core.client.answers.health import Health, LastRun, Readiness, RefusedSnapshot, RunsAnswer, RunTold
from memstate_core.client.answers.parts import Answer, PendingField, PendingObservation, Revision, Rival, Warned
from memstate_core.client.answers.queries import (
    Candidate,
    CandidateField,
    Citation,
    ContextAnswer,
    ContextWarning,
    EvidenceFound,
    Explained,
    LeftOut,
    Neighbor,
    PendingTold,
    QueryAnswer,
)
from memstate_core.client.answers.topics import Link, ListedTopic, TopicField, TopicRecord, TopicsPage
from memstate_core.client.answers.writes import FeedbackAnswer, IngestAnswer

__all__ = [
    "Answer",
    "Candidate",
    "CandidateField",
    "Citation",
    "ContextAnswer",
    "ContextWarning",
    "EvidenceFound",
    "Explained",
    "FeedbackAnswer",
    "Health",
    "IngestAnswer",
    "LastRun",
    "LeftOut",
    "Link",
    "ListedTopic",
    "Neighbor",
    "PendingField",
    "PendingObservation",
    "PendingTold",
    "QueryAnswer",
    "Readiness",
    "RefusedSnapshot",
    "Revision",
    "Rival",
    "RunTold",
    "RunsAnswer",
    "TopicField",
    "TopicRecord",
    "TopicsPage",
    "Warned",
]
