"""Response schemas: pydantic models derived from the answer types, for OpenAPI and for the output of MCP tools.

Answers are encoded from plain values, so that no request pays for validation; tests validate answers with these
models, which refuse undeclared and missing keys. In the published schemas further keys are allowed, so that clients
written against them accept a newer server.
"""

from __future__ import annotations

import types
from functools import cache
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta
from pydantic import BaseModel, ConfigDict, Field, create_model

from memstate_core.model.answers.base import NEVER_NULL, SOMETIMES, Answer


class ResponseModel(BaseModel):
    """The base of all derived models."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"additionalProperties": True})


@cache
def response_model(answer: type[Answer]) -> type[BaseModel]:
    """The model of an answer type, under the same name and with the same description."""
    hints = get_type_hints(answer, include_extras=True)
    fields: dict[str, Any] = {
        field.name: _declared(hints[field.name], field.encode_name) for field in msgspec.structs.fields(answer)
    }
    return create_model(answer.__name__, __base__=ResponseModel, __doc__=answer.__doc__, **fields)


def _declared(hint: Any, key: str) -> tuple[Any, Any]:
    """The type of a key and its default: `...` for a key that is always sent."""
    marks: dict[str, bool] = {}
    if get_origin(hint) is Annotated:
        hint, *notes = get_args(hint)
        marks = next((note.extra for note in notes if isinstance(note, Meta) and note.extra), {})
    if marks.get(NEVER_NULL):
        hint = _union(part for part in get_args(hint) if part is not types.NoneType)
    return _modelled(hint), Field(None if marks.get(SOMETIMES) else ..., alias=key)


def _modelled(hint: Any) -> Any:
    """A type with every answer type in it replaced by its model."""
    if isinstance(hint, type) and issubclass(hint, Answer):
        return response_model(hint)
    parts = tuple(_modelled(part) for part in get_args(hint))
    if not parts:
        return hint
    origin = get_origin(hint)
    return _union(parts) if origin in (Union, types.UnionType) else origin[parts]


def _union(parts: Any) -> Any:
    return Union[tuple(parts)]  # noqa: UP007 (its members are known at run time only)
