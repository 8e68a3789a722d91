"""The parts of an observation that say something about a topic: values of fields, and edges."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType

FieldType = Literal["string", "int", "float", "bool", "date", "datetime", "list", "json"]


class FieldValue(Struct, kw_only=True):
    """One value of a field. An unset reference keeps the previous one, null clears it."""

    name: str
    value: Any
    field_type: FieldType | None = None
    ref_topic_id: str | UnsetType | None = UNSET
    why_changed: str | None = None
    impact_expected: str | None = None
    confidence: float | None = None
    valid_from: str | None = None


class EdgeTo(Struct, kw_only=True):
    """An edge from the record's topic to another, given by id or key."""

    kind: str
    to_topic_id: str | None = None
    to_topic_key: str | None = None
    valid_from: str | None = None
    valid_until: str | None = None
