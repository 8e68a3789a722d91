"""One row of a dump: accepted as a record, or refused with a reason.

A record's identity is its content: SHA-256 over the canonical JSON of what its writer said, so neither
key order, white space, absent against null, nor the offset in which a time is written matter, and
nothing that the importer filled in from its clock does. Unknown keys count as said. Of a chat message the
reader says what its identity is: id and words, since a newer export may tell the rest in another way.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from memstate_core.ingest.reasons import Reason, Rejection
from memstate_core.ingest.validation.decode import decode_row
from memstate_core.ingest.validation.limits import check_limits
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
"""A row that is accepted (columns RECORD), with what its writer left out filled in, but for its time.

It is a plain tuple of immutable cells because a batch keeps tens of thousands of them: objects would keep
the garbage collector busy for longer than reading the rows takes.
"""

_PLAIN_KEYS = frozenset(
    {
        *("observation_id", "scope", "kind", "actor", "session_id", "turn"),
        *("observed_at", "provenance", "source_uri", "text"),
    }
)
"""Keys that cannot make a record structured; every other goes into the payload."""

_TURNS = range(-(1 << 63), 1 << 63)


@dataclass(frozen=True)
class Rules:
    """What holds for every row of one import: the scope of a row that names none, and the clock."""

    default_scope: str
    clock: Clock


def validate(raw: bytes, rules: Rules, identity: str | None = None) -> Record:
    """Reads one row.

    Args:
        raw: the row's bytes, one JSON object.
        rules: what holds for every row of the import.
        identity: SHA-256 of what stands for the content within its scope; None for all that was said.

    Returns:
        The record, columns RECORD.

    Raises:
        Rejection: the row is refused; says why.
    """
    said = without_nulls(decode_row(raw))
    unusual = said.keys() - _PLAIN_KEYS
    for key in unusual & {"fields", "edges"}:
        tidy_parts(said, key)
    row = observation_of(said)
    check_limits(row, len(raw))
    scope = _scope(row.scope, said, rules)
    observed_at = rules.clock.respell("observed_at", said, "$")
    _check_plain(row, said)
    if unusual:
        _drop_blank_references(row, said)
    structured = bool(row.title or row.topic_id or row.topic_key or row.fields or row.edges)
    _check_content(row)
    fields, edges = _parts(row, said, rules.clock) if structured else ((), ())
    digest = sha256(canonical(said) if identity is None else f"{scope}\x1f{identity}".encode()).hexdigest()
    return (
        scope,
        row.observation_id or digest,
        digest,
        row.kind or ("explicit_memory" if structured else "user_message"),
        row.provenance or ("api" if structured else "import"),
        observed_at,
        _payload(said) if unusual or type(said["scope"]) is dict else None,
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


def _scope(scope: Scope | None, said: dict[str, Any], rules: Rules) -> str:
    """The scope in its written form, which also takes its place in what was said."""
    if scope is None:
        said["scope"] = text = rules.default_scope
        return text
    scope_id = given(scope.id)
    if scope_id is None and scope.type != "global":
        expected = f'{{"type": "{scope.type}", "id": "…"}}'
        raise Rejection(Reason.SCOPE_WITHOUT_ID, f"$.scope has type {scope.type} and no id, expected {expected}")
    text = GLOBAL_SCOPE if scope_id is None else scope_text(scope.type, scope_id)
    more = said["scope"].keys() - {"type", "id"}
    said["scope"] = {**said["scope"], "id": text.partition(":")[2]} if more else text
    return text


def _check_plain(row: Observation, said: dict[str, Any]) -> None:
    if row.observation_id is not None and not row.observation_id.strip():
        raise Rejection(Reason.WRONG_TYPE, "$.observation_id is blank, expected an id, or no such key")
    if row.session_id is not None and not row.session_id.strip():
        row.session_id = None
        del said["session_id"]
    if row.turn is not None and row.turn not in _TURNS:
        raise Rejection(Reason.BAD_VALUE, f"$.turn is {row.turn}, expected a 64-bit integer")


def _drop_blank_references(row: Observation, said: dict[str, Any]) -> None:
    for key in ("title", "topic_id", "topic_key", "topic_kind"):
        text = getattr(row, key)
        if text is not None and not text.strip():
            setattr(row, key, None)
            del said[key]


def _check_content(row: Observation) -> None:
    if row.title or given(row.text):
        return
    if not (row.topic_id or row.topic_key):
        expected = "text, a title, or topic_id or topic_key with something about it"
        raise Rejection(Reason.MISSING_CONTENT, f"found nothing to remember, expected {expected}")
    if not (given(row.summary) or row.fields or row.edges):
        expected = "title, summary, text, fields or edges beside them"
        raise Rejection(Reason.MISSING_CONTENT, f"found a topic and nothing about it, expected {expected}")


def _parts(row: Observation, said: dict[str, Any], clock: Clock) -> tuple[tuple[FieldRow, ...], tuple[EdgeRow, ...]]:
    fields = [field_row(part, said["fields"][at], f"$.fields[{at}]", clock) for at, part in enumerate(row.fields)]
    edges = [edge_row(part, said["edges"][at], f"$.edges[{at}]", clock) for at, part in enumerate(row.edges)]
    return tuple(fields), tuple(edges)


def _payload(said: dict[str, Any]) -> str | None:
    """Everything that has no column of its own, as canonical JSON."""
    payload = {key: value for key, value in said.items() if key not in _PLAIN_KEYS or type(value) is dict}
    return canonical(payload).decode() if payload else None
