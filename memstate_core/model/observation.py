"""One record of a dump, as written.

The structs declare types, which msgspec checks in C. What types cannot express (dates, content, whether a value fits
its field) is checked in `memstate_core.ingest.validation.validate`.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from memstate_core.model.forms.registry import Memory
from memstate_core.model.parts import EdgeTo, FieldValue

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
ScopeType = Literal["global", "user", "workspace", "project", "session"]


class Scope(Struct, kw_only=True):
    """The tenant, project or session that a record belongs to."""

    type: ScopeType
    id: str | None = None


class Details(Struct, kw_only=True):
    """What an event says beside its text, by which queries find it. Unknown keys are kept in the ledger's payload."""

    tool: str | None = None
    arguments: Any = None
    status: str | None = None
    path: str | None = None
    diff_summary: str | None = None


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
    details: Details | None = None
    memory: Memory | None = None
