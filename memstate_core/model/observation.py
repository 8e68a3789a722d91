"""One record of a dump, as its writer may spell it (DESIGN section 7).

The structs say what types a record may have; msgspec checks them in C. What a type cannot say (dates,
content, whether a value fits its field) is checked in `memstate_core.ingest.validation.validate`.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType

Kind = Literal[
    "assistant_message",
    "explicit_memory",
    "file_edit",
    "system_event",
    "tool_call",
    "tool_result",
    "user_message",
]
Provenance = Literal["api", "ui", "llm", "mcp", "import", "revision"]
Placement = Literal["new_topic", "extend_topic", "version_field"]
FieldType = Literal["string", "int", "float", "bool", "date", "datetime", "list", "json"]
ScopeType = Literal["global", "user", "workspace", "project", "session"]


class Scope(Struct, kw_only=True):
    """Who may see the record."""

    type: ScopeType
    id: str | None = None


class FieldValue(Struct, kw_only=True):
    """One value of a named attribute. An unset reference keeps the old one, null clears it."""

    name: str
    value: Any
    field_type: FieldType | None = None
    ref_topic_id: str | UnsetType | None = UNSET
    why_changed: str | None = None
    impact_expected: str | None = None
    confidence: float | None = None
    valid_from: str | None = None


class EdgeTo(Struct, kw_only=True):
    """A link from the record's topic to another, named by id or by key."""

    kind: str
    to_topic_id: str | None = None
    to_topic_key: str | None = None
    valid_from: str | None = None
    valid_until: str | None = None


class Observation(Struct, kw_only=True):
    """One line of a dump. Unknown keys are kept in the ledger's payload."""

    observation_id: str | None = None
    scope: Scope | None = None
    kind: Kind | None = None
    actor: str | None = None
    session_id: str | None = None
    turn: int | None = None
    observed_at: str | None = None
    provenance: Provenance | None = None
    source_uri: str | None = None
    text: str | None = None
    placement: Placement | None = None
    topic_id: str | None = None
    topic_key: str | None = None
    topic_kind: str | None = None
    title: str | None = None
    summary: str | None = None
    fields: list[FieldValue] = []
    edges: list[EdgeTo] = []
