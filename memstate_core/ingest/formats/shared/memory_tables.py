"""What each table of a layered agent memory says, as an observation.

One function a table, from its cells to the keys of an observation without id and scope. Column names are tried in
order; `named` gives the observation of another row by its id, which is how forms name other items.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from memstate_core.ingest.formats.shared.sqlite_rows import Cells, Missing, snake

Said = dict[str, Any]


class Named(Protocol):
    """The observation of the row with an id, of a table or of any."""

    def __call__(self, identity: str, table: str | None = None) -> str:
        """The id of that observation."""


def core_block(row: Cells, named: Named) -> Said:
    """A core block."""
    del named
    form = {
        "type": "core_block",
        "label": row.need("label", "name"),
        "content": row.need("content", "text", "value"),
        "authority": row.whole("authority"),
        "read_only": row.flag("read_only"),
    }
    return _form(form, row.time("updated_at", "created_at"))


def evidence_event(row: Cells, named: Named) -> Said:
    """A piece of evidence."""
    del named
    metadata = row.json("metadata", "metadata_json")
    return {
        "kind": row.text("kind", "type"),
        "text": row.need("content", "text", "body"),
        "actor": row.text("actor", "author", "role"),
        "session_id": row.text("session_id"),
        "turn": row.whole("turn", "sequence"),
        "observed_at": row.time("observed_at", "occurred_at", "created_at", "timestamp"),
        "source_uri": row.text("source_uri", "uri", "source"),
        "details": _details(row.text("kind", "type"), metadata),
        "metadata": metadata,
    }


def semantic_fact(row: Cells, named: Named) -> Said:
    """A fact; its subject is the title of a topic."""
    stated = row.time("created_at", "updated_at", "observed_at", "valid_from")
    until = row.time("valid_until", "valid_to")
    form = {
        "type": "fact",
        "subject": f"title:{row.need('subject')}",
        "predicate": row.need("predicate"),
        "object": row.json("object", "value"),
        "confidence": row.share("confidence"),
        "valid_from": row.time("valid_from") or (stated if until else None),
        "valid_until": until,
        "sources": _sources(row, named),
    }
    return _form(form, stated)


def session_state(row: Cells, named: Named) -> Said:
    """The state of a session."""
    del named
    form = {
        "type": "session_state",
        "session_id": row.need("session_id", "id"),
        "status": row.text("status"),
        "current_goal": row.text("current_goal", "goal"),
        "summary": row.text("summary"),
        "working_set": row.texts("working_set", "working_set_json"),
    }
    return _form(form, row.time("updated_at", "created_at"))


def workspace_resource(row: Cells, named: Named) -> Said:
    """A resource; one without a title is called by its address."""
    del named
    uri = row.need("uri", "url", "path")
    form = {
        "type": "resource",
        "uri": uri,
        "title": row.text("title", "name") or uri,
        "kind": row.text("kind", "type"),
        "content": row.text("content", "text", "body"),
        "parent_uri": row.text("parent_uri"),
    }
    return _form(form, row.time("updated_at", "created_at"))


def temporal_relation(row: Cells, named: Named) -> Said:
    """A relation between two rows."""
    form = {
        "type": "relation",
        "source": _item(row, named, "source", "from"),
        "relation": row.need("relation", "relation_type", "kind", "type"),
        "target": _item(row, named, "target", "to"),
        "valid_from": row.time("valid_from"),
        "valid_until": row.time("valid_until", "valid_to"),
        "sources": _sources(row, named),
    }
    return _form(form, row.time("created_at", "updated_at", "valid_from"))


def verification_record(row: Cells, named: Named) -> Said:
    """What a verification of a row found."""
    checked = row.time("checked_at", "created_at")
    form = {
        "type": "verification",
        "target": _item(row, named, "target", "item"),
        "status": row.need("status"),
        "message": row.text("message", "detail"),
        "check": row.text("check", "check_name", "checker"),
        "checked_at": checked,
    }
    return _form(form, checked)


TABLES: Final[Mapping[str, Callable[[Cells, Named], Said]]] = {
    "core_blocks": core_block,
    "evidence_events": evidence_event,
    "semantic_facts": semantic_fact,
    "session_states": session_state,
    "workspace_resources": workspace_resource,
    "temporal_relations": temporal_relation,
    "verification_records": verification_record,
}
"""The tables in the order in which they are read: what is referred to before what refers to it."""

REFERABLE: Final = tuple(TABLES)[:5]
"""The tables whose rows others may name by id."""

_EVENTS = ("tool_call", "tool_result", "file_edit")
_DETAILS = {
    "tool": ("tool", "tool_name"),
    "arguments": ("arguments", "args", "input"),
    "status": ("status", "result_status"),
    "path": ("path", "file_path"),
    "diff_summary": ("diff_summary",),
}

_TABLE_OF = {table.rstrip("s"): table for table in REFERABLE} | {
    "evidence": "evidence_events",
    "event": "evidence_events",
    "fact": "semantic_facts",
    "block": "core_blocks",
    "session": "session_states",
    "resource": "workspace_resources",
}


def _details(kind: str | None, metadata: object) -> Said | None:
    """What a tool call, its result or a file edit says of itself in its metadata."""
    if kind not in _EVENTS or not isinstance(metadata, dict):
        return None
    given = {snake(name): value for name, value in metadata.items()}
    found = {name: next((given[each] for each in names if each in given), None) for name, names in _DETAILS.items()}
    said = {name: value for name, value in found.items() if isinstance(value, str) or (name == "arguments" and value)}
    return said or None


def _form(form: Said, observed_at: str | None) -> Said:
    given = {name: value for name, value in form.items() if value is not None}
    return {"kind": "explicit_memory", "memory": given, "observed_at": observed_at}


def _item(row: Cells, named: Named, *ends: str) -> str:
    """One end of a relation, or the target of a verification, as the observation of that row."""
    identity = row.need(*(f"{end}_id" for end in ends))
    kind = row.text(*(f"{end}_{word}" for end in ends for word in ("type", "kind", "table")))
    return f"observation:{named(identity, _TABLE_OF.get(kind or '', kind if kind in REFERABLE else None))}"


def _sources(row: Cells, named: Named) -> list[str] | None:
    """The evidence behind a row; an id that no event has is kept as it is."""
    found = row.texts("source_event_ids", "source_event_ids_json", "evidence_ids")
    return None if found is None else [_source(each, named) for each in found]


def _source(identity: str, named: Named) -> str:
    try:
        return named(identity, "evidence_events")
    except Missing:
        return identity
