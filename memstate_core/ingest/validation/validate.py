"""Validation of one row of a dump: accepted as a record, or refused with a reason.

Invariant: a record's identity is its content, the SHA-256 over the canonical JSON of the row. Key order, white space,
null or absent keys and the offset of a time make no difference, and neither does what the importer fills in from its
clock; unknown keys are part of the content. For a chat message the reader supplies the identity, which is its id and
text, since a newer export may represent the rest differently.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from memstate_core.ingest.reasons import Reason, Rejection
from memstate_core.ingest.validation.decode import decode_row
from memstate_core.ingest.validation.limits import check_limits
from memstate_core.ingest.validation.memory_form import form_edges, form_fields, name_topic, tidy_objects
from memstate_core.ingest.validation.timestamps import Clock
from memstate_core.ingest.validation.typed import observation_of, tidy_parts, without_nulls
from memstate_core.ingest.validation.values import EdgeRow, FieldRow, canonical, edge_row, field_row, given
from memstate_core.model.observation import Observation, Scope
from memstate_core.model.scope import GLOBAL_SCOPE, scope_text

RECORD = (
    "scope", "observation_id", "content_sha256", "kind", "provenance", "observed_at", "payload_json", "actor",
    "session_id", "turn", "source_uri", "text", "placement", "topic_id", "topic_key", "topic_kind", "title",
    "summary", "fields", "edges",
)  # fmt: skip
"""The columns of a record. Times are text; all are those of the evidence table."""

Record = tuple[Any, ...]
"""An accepted row (columns RECORD) with defaults filled in, except for its time.

A plain tuple of immutable cells, because a batch has tens of thousands of them: tracking objects would cost the
garbage collector more time than parsing the rows.
"""

_PLAIN_KEYS = frozenset(
    {
        *("observation_id", "scope", "kind", "actor", "session_id", "turn"),
        *("observed_at", "provenance", "source_uri", "text"),
    }
)
"""Keys that do not make a record structured; all others go into the payload."""

_TURNS = range(-(1 << 63), 1 << 63)


@dataclass(frozen=True)
class Rules:
    """Rules for every row of one import: the scope of a row without one, and the clock."""

    default_scope: str
    clock: Clock


def validate(raw: bytes, rules: Rules, identity: str | None = None) -> Record:
    """Validates one row.

    Args:
        raw: the row's bytes, one JSON object.
        rules: rules for every row of the import.
        identity: SHA-256 that identifies the content within its scope; None for the whole content.

    Returns:
        The record, columns RECORD.

    Raises:
        Rejection: the row is refused, with the reason.
    """
    content = without_nulls(decode_row(raw))
    unusual = content.keys() - _PLAIN_KEYS
    for key in unusual & {"fields", "edges"}:
        tidy_parts(content, key)
    if unusual:
        tidy_objects(content)
    row = observation_of(content)
    check_limits(row, len(raw))
    scope = _scope(row.scope, content, rules)
    observed_at = rules.clock.respell("observed_at", content, "$")
    _check_plain(row, content)
    if unusual:
        _drop_blank_references(row, content)
        name_topic(row, content, rules.clock, scope)
    structured = bool(row.title or row.topic_id or row.topic_key or row.fields or row.edges)
    _check_content(row)
    fields, edges = _parts(row, content, rules.clock, scope) if structured else ((), ())
    digest = sha256(canonical(content) if identity is None else f"{scope}\x1f{identity}".encode()).hexdigest()
    return (
        scope,
        row.observation_id or digest,
        digest,
        row.kind or ("explicit_memory" if structured else "user_message"),
        row.provenance or ("api" if structured else "import"),
        observed_at,
        _payload(content) if unusual or type(content["scope"]) is dict else None,
        row.actor,
        row.session_id,
        row.turn,
        row.source_uri,
        row.text,
        row.placement,
        row.topic_id,
        row.topic_key,
        row.topic_kind,
        row.title,
        row.summary,
        fields,
        edges,
    )


def _scope(scope: Scope | None, content: dict[str, Any], rules: Rules) -> str:
    """The scope as text, which also replaces the scope in the content."""
    if scope is None:
        content["scope"] = text = rules.default_scope
        return text
    scope_id = given(scope.id)
    if scope_id is None and scope.type != "global":
        expected = f'{{"type": "{scope.type}", "id": "…"}}'
        raise Rejection(Reason.SCOPE_WITHOUT_ID, f"$.scope has type {scope.type} and no id, expected {expected}")
    text = GLOBAL_SCOPE if scope_id is None else scope_text(scope.type, scope_id)
    more = content["scope"].keys() - {"type", "id"}
    content["scope"] = {**content["scope"], "id": text.partition(":")[2]} if more else text
    return text


def _check_plain(row: Observation, content: dict[str, Any]) -> None:
    if row.observation_id is not None and not row.observation_id.strip():
        raise Rejection(Reason.WRONG_TYPE, "$.observation_id is blank, expected an id, or no such key")
    if row.session_id is not None and not row.session_id.strip():
        row.session_id = None
        del content["session_id"]
    if row.turn is not None and row.turn not in _TURNS:
        raise Rejection(Reason.BAD_VALUE, f"$.turn is {row.turn}, expected a 64-bit integer")


def _drop_blank_references(row: Observation, content: dict[str, Any]) -> None:
    for key in ("title", "topic_id", "topic_key", "topic_kind"):
        text = getattr(row, key)
        if text is not None and not text.strip():
            setattr(row, key, None)
            del content[key]


def _check_content(row: Observation) -> None:
    if row.title or given(row.text):
        return
    if not (row.topic_id or row.topic_key):
        expected = "text, a title, or topic_id or topic_key with something about it"
        raise Rejection(Reason.MISSING_CONTENT, f"found nothing to remember, expected {expected}")
    if not (given(row.summary) or row.fields or row.edges or row.memory):
        expected = "title, summary, text, fields or edges beside them"
        raise Rejection(Reason.MISSING_CONTENT, f"found a topic and nothing about it, expected {expected}")


def _parts(
    row: Observation, content: dict[str, Any], clock: Clock, scope: str
) -> tuple[tuple[FieldRow, ...], tuple[EdgeRow, ...]]:
    fields = [field_row(part, content["fields"][at], f"$.fields[{at}]", clock) for at, part in enumerate(row.fields)]
    edges = [edge_row(part, content["edges"][at], f"$.edges[{at}]", clock) for at, part in enumerate(row.edges)]
    form = row.memory
    return (*fields, *form_fields(form, clock, scope)), (*edges, *form_edges(form, clock, scope))


def _payload(content: dict[str, Any]) -> str | None:
    """Everything without a column of its own, as canonical JSON."""
    payload = {key: value for key, value in content.items() if key not in _PLAIN_KEYS or type(value) is dict}
    return canonical(payload).decode() if payload else None
