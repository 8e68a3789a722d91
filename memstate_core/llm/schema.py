"""The shapes of answers: as JSON Schema, for servers that constrain their output, and as types for validation.

Fields are those of an observation without ids and record times. Topics refer to each other by title and to turns by
number, so an id in a text can never be mistaken for a reference.
"""

from __future__ import annotations

from typing import Any, get_args

from msgspec import Struct

from memstate_core.model.parts import FieldType


class Shape(Struct, frozen=True):
    """The shape of an answer: a name, its JSON Schema, and the key of its list."""

    name: str
    schema: dict[str, Any]
    items: str


class AnswerField(Struct, kw_only=True):
    """A named value that the turns state about the topic."""

    name: str
    value: Any
    field_type: str | None = None
    why_changed: str | None = None
    confidence: float | None = None


class AnswerEdge(Struct, kw_only=True):
    """An edge to another topic: one of the answer, by title, or one of the prompt."""

    kind: str
    to: str


class AnswerTopic(Struct, kw_only=True):
    """A topic in an answer; `turns` are the numbers of the turns that support it."""

    title: str
    turns: list[int]
    summary: str | None = None
    topic_kind: str | None = None
    extends: str | None = None
    why: str | None = None
    fields: list[AnswerField] = []
    edges: list[AnswerEdge] = []


class AnswerPlacement(Struct, kw_only=True):
    """The topic of the prompt that a topic of the session extends, if any."""

    topic: int
    extends: str | None = None
    why: str | None = None


def _maybe(kind: str) -> dict[str, Any]:
    return {"type": [kind, "null"]}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _list(item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": item}


_TEXT = {"type": "string"}
_WORD = {"type": "string", "pattern": "^[a-z][a-z0-9_]{0,39}$"}
_PLAIN = [_TEXT, {"type": "number"}, {"type": "boolean"}]
_FIELD = _object(
    {
        "name": _WORD,
        "value": {"anyOf": [*_PLAIN, _list(_TEXT)]},
        "field_type": {"type": "string", "enum": list(get_args(FieldType))},
        "why_changed": _maybe("string"),
        "confidence": _maybe("number"),
    }
)
_TOPIC = _object(
    {
        "title": _TEXT,
        "summary": _TEXT,
        "topic_kind": _WORD,
        "turns": _list({"type": "integer"}),
        "extends": _maybe("string"),
        "why": _maybe("string"),
        "fields": _list(_FIELD),
        "edges": _list(_object({"kind": _WORD, "to": _TEXT})),
    }
)
_PLACEMENT = _object({"topic": {"type": "integer"}, "extends": _maybe("string"), "why": _maybe("string")})

TOPICS = Shape("topics", _object({"topics": _list(_TOPIC)}), "topics")
PLACEMENTS = Shape("placements", _object({"placements": _list(_PLACEMENT)}), "placements")
