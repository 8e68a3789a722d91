"""Typed request bodies.

Unknown keys are refused, since a misspelt `scope` would search every scope.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from memstate_core.embed.token_counters import MODEL, Served
from memstate_core.model.observation import Kind
from memstate_core.model.scope import parse_scope, scope_text
from memstate_core.model.text import parse_moment
from memstate_core.retrieve.packs.context import EVIDENCE, TOPICS
from memstate_core.retrieve.packs.recall_warnings import Workspace
from memstate_core.retrieve.query import Question
from memstate_core.retrieve.routing import AUTO, Policy

Stage = Literal["semantic", "structural", "temporal"]
ScopeType = Literal["global", "user", "workspace", "project", "session"]
Name = Annotated[str, Field(min_length=1, max_length=1024)]
Names = Annotated[list[Name], Field(max_length=200)]


def _moment(value: object) -> datetime:
    try:
        return parse_moment(value if isinstance(value, str) else "")
    except (ValueError, OverflowError):
        raise ValueError("expected an ISO 8601 time such as 2026-04-22T12:00:00Z") from None


def _whole(value: object) -> object:
    """Accepts 8.0 as an integer, as JSON Schema does."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Whole = BeforeValidator(_whole)
Moment = Annotated[datetime, BeforeValidator(_moment), WithJsonSchema({"type": "string", "format": "date-time"})]


_REFERENCES: list[JsonValue] = [
    {"properties": {"type": {"const": "global"}, "id": {"enum": ["", None]}}},
    {"properties": {"id": {"type": "string", "pattern": r"\S"}}, "required": ["id"]},
]
_VERDICTS: list[JsonValue] = [
    {
        "properties": {one: {"const": True}, other: {"const": False}},
        "required": [one],
    }
    for one, other in (("used", "failed"), ("failed", "used"))
]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class ScopeRef(_Body):
    """A scope by type and id; the global one needs no id."""

    model_config = ConfigDict(json_schema_extra={"anyOf": _REFERENCES})

    type: ScopeType
    id: Annotated[str, Field(max_length=1024)] | None = None


def scope_name(given: str | ScopeRef) -> str:
    """The written form of a scope.

    Raises:
        ValueError: the type is unknown or the id is missing.
    """
    return parse_scope(given if isinstance(given, str) else scope_text(given.type, given.id or ""))


ScopeName = Annotated[
    str,
    Field(
        min_length=1,
        max_length=1024,
        json_schema_extra={"pattern": r"^(global:?|(global|user|workspace|project|session):[\s\S]*\S[\s\S]*)$"},
    ),
]
"""`TYPE:ID`; `parse_scope` refuses others with a clearer message than the pattern."""

OneScope = ScopeName | ScopeRef


Scopes = OneScope | Annotated[list[OneScope], Field(min_length=1, max_length=100)] | None


class _Question(_Body):
    """What all questions have in common.

    Attributes:
        q: the question.
        scope: the scopes to search: `{"type", "id"}`, `TYPE:ID`, or a list of these; all by default.
        stages: the ranking stages used beside term matching; `temporal` reads ISO dates in any language, names of
            months and relative dates in English and in most languages with locale data.
        as_of: answer from the state at that time.
        record: whether the answer is recorded as an access of its topics; the server's setting by default.
    """

    q: Annotated[str, Field(min_length=1, max_length=16_384, json_schema_extra={"pattern": r"\S"})]
    scope: Scopes = None
    stages: list[Stage] = ["semantic", "structural", "temporal"]
    as_of: Moment | None = None
    record: bool | None = None

    @field_validator("q")
    @classmethod
    def _asks_something(cls, q: str) -> str:
        if not q.strip():
            raise ValueError("found a blank question, expected words")
        return q

    @model_validator(mode="after")
    def _names_scopes(self) -> _Question:
        self.scopes()
        return self

    def scopes(self) -> tuple[str, ...] | None:
        """The requested scopes, without duplicates."""
        if self.scope is None:
            return None
        given = self.scope if isinstance(self.scope, list) else [self.scope]
        return tuple(dict.fromkeys(map(scope_name, given)))


class QueryBody(_Question):
    """A question.

    Attributes:
        explain: return the parts of each score.
        top_k: how many topics to return.
        evidence_k: how much evidence to return.
        topic_ids: consider only these topics, with all their fields.
        field_names: return only these fields.
        history: return older revisions of fields; by default only with `explain` and the temporal stage.
        pending: include accepted observations that are not published yet.
        evidence_kinds: return only evidence of these kinds.
        tool: return only evidence whose details name this tool.
        status: return only evidence whose details have this status.
        path: return only evidence whose details have this path, or one below it.
    """

    explain: bool = False
    top_k: Annotated[int, Field(ge=1, le=200), Whole] = 8
    evidence_k: Annotated[int, Field(ge=0, le=1000), Whole] = 10
    topic_ids: Names | None = None
    field_names: Names | None = None
    history: bool | None = None
    pending: bool = False
    evidence_kinds: list[Kind] | None = None
    tool: Name | None = None
    status: Name | None = None
    path: Annotated[str, Field(min_length=1, max_length=8192)] | None = None

    def question(self) -> Question:
        """The question in the form that retrieval takes."""
        return Question(
            text=self.q,
            scopes=self.scopes(),
            top_k=self.top_k,
            evidence_k=self.evidence_k,
            stages=frozenset(self.stages),
            explain=self.explain,
            as_of=self.as_of,
            topic_ids=tuple(self.topic_ids or ()),
            field_names=tuple(self.field_names or ()),
            evidence_kinds=tuple(self.evidence_kinds or ()),
            tool=self.tool,
            status=self.status,
            path=self.path,
            history=self.explain and "temporal" in self.stages if self.history is None else self.history,
        )


class WorkspaceRef(_Body):
    """Where a question is asked from; what is absent decides nothing.

    Attributes:
        root: the path of the workspace; what was noted in another one does not drift.
        branch: the branch that is checked out.
        commit: the commit that is checked out, in full or shortened.
    """

    root: Name | None = None
    branch: Name | None = None
    commit: Name | None = None


class ContextBody(_Question):
    """A question whose answer goes into a prompt.

    Attributes:
        budget: the maximum number of tokens of the text.
        policy: what is read: `auto` core blocks, active sessions and all that the question finds; `task` core blocks
            and active sessions, without a search; `workspace` core blocks, and the resources that the question finds.
        tokenizer: what counts tokens: `model` the tokenizer of the embedding model, `characters` one for four of them.
        workspace: where the question is asked from, for warnings of drift.
    """

    budget: Annotated[int, Field(ge=0, le=100_000), Whole]
    policy: Policy = AUTO
    tokenizer: Served = MODEL
    workspace: WorkspaceRef | None = None

    def place(self) -> Workspace | None:
        """Where the question is asked from."""
        return None if self.workspace is None else Workspace(**self.workspace.model_dump())

    def question(self) -> Question:
        """The question in the form that retrieval takes."""
        stages = frozenset(self.stages)
        return Question(self.q, self.scopes(), TOPICS, EVIDENCE, stages, as_of=self.as_of, policy=self.policy)


class FeedbackBody(_Body):
    """Whether a topic was useful: exactly one of `used` and `failed` is true.

    Attributes:
        topic_id: the id of the topic, of its tombstone, or an alias.
        fields: the fields it applies to; by default the whole topic.
        used: it was useful.
        failed: it was returned and was not useful.
        at: when; by default the server's current time.
    """

    model_config = ConfigDict(json_schema_extra={"oneOf": _VERDICTS})

    topic_id: Name
    fields: Names | None = None
    used: bool = False
    failed: bool = False
    at: Moment | None = None

    @model_validator(mode="after")
    def _says_which(self) -> FeedbackBody:
        if self.used == self.failed:
            raise ValueError("expected either used: true or failed: true")
        return self
