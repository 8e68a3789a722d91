"""What callers get: the shapes of answers, for the API's description. Answers are encoded from plain values.

Shapes promise which keys are always there. `memstate_core.client.answers` has them as a client takes them: where a key
can be done without it does without, so that it reads older servers too. Here stands what routes and tools answer;
what those answers are made of is in the modules.
"""

from memstate_core.serve.answers.health import GraphHealth, Health, Readiness, RunsAnswer
from memstate_core.serve.answers.problem import ProblemDocument
from memstate_core.serve.answers.queries import ContextAnswer, QueryAnswer
from memstate_core.serve.answers.topics import TopicRecord, TopicsPage
from memstate_core.serve.answers.writes import FeedbackAnswer, IngestAnswer

__all__ = [
    "ContextAnswer",
    "FeedbackAnswer",
    "GraphHealth",
    "Health",
    "IngestAnswer",
    "ProblemDocument",
    "QueryAnswer",
    "Readiness",
    "RunsAnswer",
    "TopicRecord",
    "TopicsPage",
]
