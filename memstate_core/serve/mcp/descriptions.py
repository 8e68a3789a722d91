"""Tool descriptions, argument descriptions and argument types of the MCP tools."""

from __future__ import annotations

from typing import Annotated, Any

from mcp_types import ToolAnnotations
from pydantic import BaseModel, ConfigDict, Field

from memstate_core.embed.token_counters import Served
from memstate_core.model.observation import Kind, Placement
from memstate_core.model.parts import FieldType
from memstate_core.retrieve.routing import Policy
from memstate_core.serve.http.request_bodies import Moment

INSTRUCTIONS = """\
A long-term memory of topics. Each topic has fields whose values change over time, with their history and evidence.
Call memory_query before you rely on what you remember about a person, a project or a decision. Answers come from the
latest published snapshot and name it; take their warnings into account. When you learn something that will matter
later, store it with memory_ingest; it becomes searchable after the next nightly run."""

READS = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
ADDS = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False)

QUERY = """\
Searches the memory for a question. Returns matching topics (`candidates`: title, summary, current fields, warnings,
neighbors) and matching evidence (verbatim observations), best first. Use it before answering from your own memory. If
nothing relevant is returned, rephrase the query or omit the scope."""

TOPIC = """\
Reads one topic: all fields with their current values, its edges and its warnings. Use it with a `topic_id` from
memory_query when the candidate's summary is not enough. Ids of topics that were merged into another still work."""

HISTORY = """\
Reads one topic with all previous values of its fields: when each became true, why it changed, and its evidence. Use
it to find out what was true earlier, when something changed, or why."""

RESOURCES = """\
Browses the documents, files, notes and links of a workspace as a tree. Without arguments it lists the roots; with
`parent_uri` the resources below that one; with `uri` that resource with its whole content. To find a resource by what
it says, use memory_query."""

INGEST = """\
Stores one observation. It is durable when the call returns and searchable after the next nightly run. Either describe
what happened in `text`, in complete, self-contained sentences (use names and dates, not "he" or "tomorrow"), or name a
topic by `title` or `topic_key` and set its values with `fields`. Duplicates are ignored, so it is safe to repeat the
call if you are not sure that it succeeded."""

Question = Annotated[str, Field(min_length=1, max_length=16_384, description="The question, or keywords.")]
ScopesGiven = Annotated[
    str | list[str] | None,
    Field(
        description="The scope or scopes to search, each as TYPE:ID with TYPE one of global, user, workspace, project, "
        "session; for example user:aya. By default all scopes that you may read."
    ),
]
ScopeGiven = Annotated[
    str,
    Field(
        description="The scope to write to, as TYPE:ID with TYPE one of global, user, workspace, project, session. By "
        "default the only scope that you may write to, otherwise the global scope."
    ),
]
TopK = Annotated[int, Field(ge=1, le=200, description="The maximum number of topics to return.")]
EvidenceK = Annotated[int, Field(ge=0, le=1000, description="The maximum number of pieces of evidence to return.")]
AsOf = Annotated[Moment | None, Field(description="Answer as of this time, ISO 8601 with an offset.")]
WithPending = Annotated[
    bool, Field(description="Include stored observations that are not published yet, marked as pending.")
]
EvidenceKinds = Annotated[list[Kind] | None, Field(description="Return only evidence of these kinds, as file_edit.")]
ToolName = Annotated[str | None, Field(description="Return only evidence of calls and results of this tool.")]
ToolStatus = Annotated[str | None, Field(description="Return only evidence of what ended so, such as ok or error.")]
ToolPath = Annotated[str | None, Field(description="Return only evidence about the file of this path, or files below.")]
Budget = Annotated[
    int | None,
    Field(
        ge=0,
        le=100_000,
        description="Return one text of at most this many tokens, with a citation for each line, instead of lists.",
    ),
]
TopicId = Annotated[
    str, Field(min_length=1, max_length=1024, description="The id of a topic, as returned by another tool.")
]
ResourceUri = Annotated[str | None, Field(max_length=4096, description="The resource with this URI, with its content.")]
ParentUri = Annotated[str | None, Field(max_length=4096, description="Only the resources below the one with this URI.")]
ResourceLimit = Annotated[int, Field(ge=1, le=1000, description="The maximum number of resources to return.")]
Expand = Annotated[bool, Field(description="Include old values that a summary replaced.")]
Text = Annotated[str, Field(description="What happened or was said, in complete sentences.")]
Title = Annotated[
    str, Field(description="The topic's title, a short name; required for fields unless a key or id is given.")
]
Summary = Annotated[str, Field(description="One or two sentences about the topic.")]
TopicKey = Annotated[str, Field(description="A stable key that you choose for the topic, such as acme-renewal.")]
TopicRef = Annotated[str, Field(description="The id of an existing topic to add to.")]
TopicKind = Annotated[str, Field(description="The kind of topic, such as deal, person or project.")]
KindGiven = Annotated[Kind | None, Field(description="The kind of observation; by default derived from its content.")]
PlacementGiven = Annotated[
    Placement | None, Field(description="Force a new topic, an extension of a topic, or a new version of its fields.")
]
Actor = Annotated[str, Field(description="Who said or did it.")]
SessionId = Annotated[str, Field(description="The id of the conversation.")]
ObservedAt = Annotated[
    Moment | None,
    Field(description="When it happened, ISO 8601; by default now."),
]
ObservationId = Annotated[str, Field(description="An id that you choose; by default derived from the content.")]


class _Given(BaseModel):
    model_config = ConfigDict(extra="forbid")


class FieldGiven(_Given):
    """A value of one field of the topic."""

    name: Annotated[str, Field(description="The name of the field, such as owner or renewal_date.")]
    value: Annotated[Any, Field(description="The value, valid from now or from valid_from.")]
    field_type: Annotated[FieldType | None, Field(description="The type of the value; string by default.")] = None
    ref_topic_id: Annotated[
        str | None, Field(description="The id of the topic that the value refers to; null clears it.")
    ] = None
    why_changed: Annotated[str | None, Field(description="Why the value changed.")] = None
    impact_expected: Annotated[str | None, Field(description="The expected impact of the change.")] = None
    confidence: Annotated[float | None, Field(ge=0, le=1, description="Your confidence, from 0 to 1.")] = None
    valid_from: Annotated[str | None, Field(description="When the value became true, ISO 8601.")] = None


class EdgeGiven(_Given):
    """A typed edge from the topic to another one, named by id or by key."""

    kind: Annotated[str, Field(description="The relation, such as part_of, extends, mentions or contradicts.")]
    to_topic_id: Annotated[str | None, Field(description="The other topic's id.")] = None
    to_topic_key: Annotated[str | None, Field(description="The other topic's key.")] = None
    valid_from: Annotated[str | None, Field(description="When the relation began, ISO 8601.")] = None
    valid_until: Annotated[str | None, Field(description="When the relation ended, ISO 8601.")] = None


class EventDetails(_Given):
    """What an event says beside its text."""

    tool: Annotated[str | None, Field(description="The tool that was called, or whose result it is.")] = None
    arguments: Annotated[Any, Field(description="The arguments of the call.")] = None
    status: Annotated[str | None, Field(description="How it ended, such as ok or error.")] = None
    path: Annotated[str | None, Field(description="The file that it is about.")] = None
    diff_summary: Annotated[str | None, Field(description="What an edit changed, in a sentence.")] = None


DetailsGiven = Annotated[
    EventDetails | None, Field(description="Of a tool call, its result or a file edit: what queries can filter by.")
]


class PlaceGiven(_Given):
    """Where a question is asked from."""

    root: Annotated[str | None, Field(description="The path of the workspace.")] = None
    branch: Annotated[str | None, Field(description="The branch that is checked out.")] = None
    commit: Annotated[str | None, Field(description="The commit that is checked out.")] = None


WorkspaceGiven = Annotated[
    PlaceGiven | None,
    Field(description="With a budget: warn of memories that were noted on another branch or at another commit."),
]
PolicyGiven = Annotated[
    Policy,
    Field(
        description="With a budget, what the text is made of: auto (core memory, active sessions and all that the "
        "question finds), task (core memory and active sessions, without a search) or workspace (core memory, and the "
        "documents and files that the question finds)."
    ),
]
TokenizerGiven = Annotated[
    Served,
    Field(
        description="With a budget, what counts its tokens: model (the tokenizer of the embedding model, on the safe "
        "side) or characters (one token for four of them)."
    ),
]
FieldsGiven = Annotated[list[FieldGiven] | None, Field(description="Values of the topic's fields.")]
EdgesGiven = Annotated[list[EdgeGiven] | None, Field(description="Edges to other topics.")]
