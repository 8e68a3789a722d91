"""What the tools say of themselves to the models that use them, and the shapes of what these hand over."""

from __future__ import annotations

from typing import Annotated, Any

from mcp_types import ToolAnnotations
from pydantic import BaseModel, ConfigDict, Field

from memstate_core.model.observation import FieldType, Kind, Placement
from memstate_core.serve.http.request_bodies import Moment

INSTRUCTIONS = """\
A long-term memory: topics with fields whose values change over time, each with its history and its evidence.
Before you rely on what you think you know of a person, a project or a decision, ask memory_query. Answers come from
the last published snapshot and name it; heed their warnings. When you learn something that will matter later, hand it
over with memory_ingest; it can be asked for after the next nightly run."""

READS = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
ADDS = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False)

QUERY = """\
Looks up what the memory holds about a question. Returns topics (`candidates`: title, summary, current fields,
warnings, neighbours) and pieces of evidence (the words that somebody said), best first. Use it before you answer from
memory of your own. If nothing fits, ask again in other words, or without a scope."""

TOPIC = """\
Reads one topic as it is now: every field with its current value, links, warnings. Use it with a `topic_id` from
memory_query when the candidate's summary is not enough. Old ids of merged topics answer too."""

HISTORY = """\
Reads one topic with every value that its fields ever had: since when each was true, why it changed, which evidence
says so. Use it when the question is what was before, when something changed, or why."""

INGEST = """\
Hands one observation to the memory. It is durable when this returns, and can be asked for after the next nightly run.
Either write what happened as `text`, in whole sentences that stand for themselves (names and dates, no "he" or
"tomorrow"), or name a topic by `title` or `topic_key` and give its values as `fields`. The same observation handed over
twice counts once, so repeat the call if you are not sure that it arrived."""

Question = Annotated[
    str, Field(min_length=1, max_length=16_384, description="What you want to know, as a question or in key words.")
]
ScopesGiven = Annotated[
    str | list[str] | None,
    Field(
        description="Where to look: TYPE:ID, or several of them; TYPE is global, user, workspace, project or session, "
        "for instance user:aya. Everything that you may see without it."
    ),
]
ScopeGiven = Annotated[
    str,
    Field(
        description="Whose memory this is: TYPE:ID, TYPE being global, user, workspace, project or session. Without it "
        "the only scope that you may write to, or else the global one."
    ),
]
TopK = Annotated[int, Field(ge=1, le=200, description="How many topics to return at most.")]
EvidenceK = Annotated[int, Field(ge=0, le=1000, description="How many pieces of evidence to return at most.")]
AsOf = Annotated[
    Moment | None, Field(description="Answer as it was known to be true at this time, ISO 8601 with an offset.")
]
WithPending = Annotated[
    bool, Field(description="Also what was handed over and is not published yet; it is marked as pending.")
]
Budget = Annotated[
    int | None,
    Field(
        ge=0,
        le=100_000,
        description="Answer by one text of at most so many tokens, each line with its source, instead of lists.",
    ),
]
TopicId = Annotated[str, Field(min_length=1, max_length=1024, description="The id of a topic, as an answer names it.")]
Expand = Annotated[bool, Field(description="Also the values that a summary of old ones stands for.")]
Text = Annotated[str, Field(description="What happened or was said, in whole sentences.")]
Title = Annotated[str, Field(description="The topic's title, a short name of one thing; needed for fields.")]
Summary = Annotated[str, Field(description="One or two sentences about the topic.")]
TopicKey = Annotated[str, Field(description="A stable key of your own for the topic, such as acme-renewal.")]
TopicRef = Annotated[str, Field(description="The id of a topic that is there already, to add to it.")]
TopicKind = Annotated[str, Field(description="What kind of thing the topic is, such as deal, person, project.")]
KindGiven = Annotated[Kind | None, Field(description="What was observed; told by its content without it.")]
PlacementGiven = Annotated[
    Placement | None, Field(description="Insist on a new topic, on extending one, or on a new version of its fields.")
]
Actor = Annotated[str, Field(description="Who said or did it.")]
SessionId = Annotated[str, Field(description="The conversation it is from.")]
ObservedAt = Annotated[
    Moment | None,
    Field(description="When it happened, ISO 8601; when it arrived without it."),
]
ObservationId = Annotated[str, Field(description="An id of your own; it follows from the content without it.")]


class _Given(BaseModel):
    model_config = ConfigDict(extra="forbid")


class FieldGiven(_Given):
    """One value of a named attribute of the topic."""

    name: Annotated[str, Field(description="The attribute, such as owner or renewal_date.")]
    value: Annotated[Any, Field(description="Its value from now on, or from valid_from on.")]
    field_type: Annotated[FieldType | None, Field(description="How to read the value; string without it.")] = None
    ref_topic_id: Annotated[str | None, Field(description="The topic that the value names; null clears it.")] = None
    why_changed: Annotated[str | None, Field(description="Why it has this value now.")] = None
    impact_expected: Annotated[str | None, Field(description="What follows from it.")] = None
    confidence: Annotated[float | None, Field(ge=0, le=1, description="How sure you are.")] = None
    valid_from: Annotated[str | None, Field(description="Since when it is true, ISO 8601.")] = None


class EdgeGiven(_Given):
    """A link from the topic to another one, named by id or by key."""

    kind: Annotated[str, Field(description="How they relate, such as part_of, extends, mentions, contradicts.")]
    to_topic_id: Annotated[str | None, Field(description="The other topic's id.")] = None
    to_topic_key: Annotated[str | None, Field(description="The other topic's key.")] = None
    valid_from: Annotated[str | None, Field(description="Since when, ISO 8601.")] = None
    valid_until: Annotated[str | None, Field(description="Until when, ISO 8601.")] = None


FieldsGiven = Annotated[list[FieldGiven] | None, Field(description="Values of the topic's attributes.")]
EdgesGiven = Annotated[list[EdgeGiven] | None, Field(description="Links to other topics.")]
