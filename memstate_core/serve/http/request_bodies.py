"""What callers may say: the bodies of requests, typed.

Unknown keys are refused, since a misspelt `scope` would open every scope.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, WithJsonSchema, model_validator

from memstate_core.model.scope import parse_scope, scope_text
from memstate_core.model.text import parse_moment
from memstate_core.retrieve.context import EVIDENCE, TOPICS
from memstate_core.retrieve.query import Question

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
    """JSON Schema has 8.0 for an integer."""
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
"""`TYPE:ID`; what is none is refused by `parse_scope`, which says more than a pattern."""

OneScope = ScopeName | ScopeRef


Scopes = OneScope | Annotated[list[OneScope], Field(min_length=1, max_length=100)] | None


class _Asking(_Body):
    """What every question says.

    Attributes:
        q: the question.
        scope: where to look: `{"type", "id"}`, `TYPE:ID`, or a list of these; every scope without it.
        stages: what counts beside the words.
        as_of: answer from the state at that time.
        record: whether the answer counts as a use of its topics; the server's own rule without it.
    """

    q: Annotated[str, Field(min_length=1, max_length=16_384)]
    scope: Scopes = None
    stages: list[Stage] = ["semantic", "structural", "temporal"]
    as_of: Moment | None = None
    record: bool | None = None

    @model_validator(mode="after")
    def _names_scopes(self) -> _Asking:
        self.scopes()
        return self

    def scopes(self) -> tuple[str, ...] | None:
        """The scopes that are meant, each once."""
        if self.scope is None:
            return None
        given = self.scope if isinstance(self.scope, list) else [self.scope]
        return tuple(dict.fromkeys(map(scope_name, given)))


class QueryBody(_Asking):
    """A question.

    Attributes:
        explain: say what each score is made of.
        top_k: how many topics to return.
        evidence_k: how much evidence to return.
        topic_ids: consider these topics only, with all their fields.
        field_names: return these fields only.
        history: give older revisions of fields too; without it, where `explain` and the temporal stage are asked for.
        pending: lay what is accepted and not published yet over the answer.
    """

    explain: bool = False
    top_k: Annotated[int, Field(ge=1, le=200), Whole] = 8
    evidence_k: Annotated[int, Field(ge=0, le=1000), Whole] = 10
    topic_ids: Names | None = None
    field_names: Names | None = None
    history: bool | None = None
    pending: bool = False

    def question(self) -> Question:
        """The question as retrieval takes it."""
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
            history=self.explain and "temporal" in self.stages if self.history is None else self.history,
        )


class ContextBody(_Asking):
    """A question whose answer is to be put into a prompt.

    Attributes:
        budget: how many tokens the text may have.
    """

    budget: Annotated[int, Field(ge=0, le=100_000), Whole]

    def question(self) -> Question:
        """The question as retrieval takes it."""
        return Question(self.q, self.scopes(), TOPICS, EVIDENCE, frozenset(self.stages), as_of=self.as_of)


class FeedbackBody(_Body):
    """Whether a topic was of use: exactly one of `used` and `failed` is true.

    Attributes:
        topic_id: the topic, a tombstone of it, or an alias.
        fields: the fields that are meant; the whole topic without any.
        used: it was of use.
        failed: it was returned and was not what was wanted.
        at: when; the server's clock without it.
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
