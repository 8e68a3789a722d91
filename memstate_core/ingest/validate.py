"""One row of a dump: accepted as a record, or refused with a reason.

A record's identity is its content: SHA-256 over the canonical JSON of what its writer said, so neither
key order, white space, absent against null, nor the offset in which a time is written matter, and
nothing that the importer filled in from its clock does. Unknown keys count as said.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any, NamedTuple, NoReturn, get_args

import msgspec

from memstate_core.ingest.decode import decode_row
from memstate_core.ingest.reasons import Reason, Rejection
from memstate_core.ingest.values import Clock, EdgeRow, FieldRow, canonical, edge_row, field_row, given
from memstate_core.model.observation import FieldType, Kind, Observation, Placement, Provenance, Scope, ScopeType
from memstate_core.model.scope import GLOBAL_SCOPE, scope_text
from memstate_core.model.text import iso

_PLAIN_KEYS = frozenset(
    "observation_id scope kind actor session_id turn observed_at provenance source_uri text".split()
)
"""Keys with a column of their own; every other goes into the payload."""

_REFERENCES = ("title", "topic_id", "topic_key", "topic_kind")
_WORDS: dict[str, tuple[str, ...]] = {
    "kind": get_args(Kind),
    "provenance": get_args(Provenance),
    "placement": get_args(Placement),
    "field_type": get_args(FieldType),
    "type": get_args(ScopeType),
}
_UNKNOWN_WORD = re.compile(r"Invalid enum value (?P<word>.*) - at `(?P<path>\S*?(?P<key>\w+))`", re.DOTALL)
_TURNS = range(-(1 << 63), 1 << 63)


class Record(NamedTuple):
    """A row that is accepted, with what its writer left out filled in, except the time of observation."""

    observation: Observation
    scope: str
    observed_at: datetime | None
    content_sha256: str
    payload_json: str | None
    fields: list[FieldRow]
    edges: list[EdgeRow]


@dataclass(frozen=True)
class Rules:
    """What holds for every row of one import: the scope of a row that names none, and the clock."""

    default_scope: str
    clock: Clock


def validate(raw: bytes, rules: Rules) -> Record:
    """Reads one row.

    Args:
        raw: the row's bytes, one JSON object.
        rules: what holds for every row of the import.

    Raises:
        Rejection: the row is refused; says why.
    """
    said = decode_row(raw)
    if None in said.values():
        said = {key: item for key, item in said.items() if item is not None}
    unusual = said.keys() - _PLAIN_KEYS
    if unusual:
        _tidy(said)
    try:
        observation = msgspec.convert(said, Observation)
    except msgspec.ValidationError as error:
        _explain(str(error))
    scope = _scope(observation.scope, said, rules)
    observed_at = None
    if observation.observed_at is not None:
        observed_at = rules.clock.moment(observation.observed_at, "$.observed_at")
        said["observed_at"] = iso(observed_at)
    _check_plain(observation, said)
    fields, edges = _parts(observation, said, rules.clock) if unusual else ([], [])
    _fill_in(observation, _is_structured(observation))
    digest = sha256(canonical(said)).hexdigest()
    if observation.observation_id is None:
        observation.observation_id = digest
    return Record(observation, scope, observed_at, digest, _payload(said), fields, edges)


def _tidy(said: dict[str, Any]) -> None:
    """Takes out what says nothing: blank references, nulls inside fields and edges, empty lists of them."""
    for key in _REFERENCES:
        if isinstance(text := said.get(key), str) and not text.strip():
            del said[key]
    for key, keep in (("fields", ("value", "ref_topic_id")), ("edges", ())):
        items = said.get(key)
        if items == []:
            del said[key]
        elif isinstance(items, list):
            said[key] = [_without_nulls(item, keep) for item in items]


def _without_nulls(item: Any, keep: tuple[str, ...]) -> Any:
    if not isinstance(item, dict):
        return item
    return {key: value for key, value in item.items() if value is not None or key in keep}


def _explain(message: str) -> NoReturn:
    word = _UNKNOWN_WORD.fullmatch(message)
    if word is None:
        raise Rejection(Reason.WRONG_TYPE, message[:1].lower() + message[1:]) from None
    reason = Reason.UNKNOWN_PLACEMENT if word["key"] == "placement" else Reason.UNKNOWN_WORD
    allowed = ", ".join(_WORDS[word["key"]])
    raise Rejection(reason, f"{word['path']} is {word['word'][:100]}, expected one of {allowed}") from None


def _scope(scope: Scope | None, said: dict[str, Any], rules: Rules) -> str:
    """The scope in its written form; the same goes into what was said."""
    if scope is None:
        said["scope"] = text = rules.default_scope
        return text
    scope_id = given(scope.id)
    if scope_id is None and scope.type != "global":
        found = f"$.scope has type {scope.type} and no id"
        raise Rejection(Reason.SCOPE_WITHOUT_ID, f'{found}, expected {{"type": "{scope.type}", "id": "…"}}')
    text = scope_text(scope.type, scope_id) if scope_id is not None else GLOBAL_SCOPE
    more = said["scope"].keys() - {"type", "id"}
    said["scope"] = {**said["scope"], "id": text.partition(":")[2]} if more else text
    return text


def _check_plain(observation: Observation, said: dict[str, Any]) -> None:
    if observation.observation_id is not None and not observation.observation_id.strip():
        raise Rejection(Reason.WRONG_TYPE, "$.observation_id is blank, expected an id, or no such key")
    if observation.session_id is not None and not observation.session_id.strip():
        observation.session_id = None
        del said["session_id"]
    if observation.turn is not None and observation.turn not in _TURNS:
        raise Rejection(Reason.BAD_VALUE, f"$.turn is {observation.turn}, expected a 64-bit integer")
    if not (given(observation.text) or observation.title or _refers_with_content(observation)):
        expected = "text, a title, or topic_id or topic_key with summary, fields or edges"
        raise Rejection(Reason.MISSING_CONTENT, f"found nothing to remember, expected {expected}")


def _refers_with_content(observation: Observation) -> bool:
    refers = observation.topic_id or observation.topic_key
    return bool(refers and (given(observation.summary) or observation.fields or observation.edges))


def _parts(observation: Observation, said: dict[str, Any], clock: Clock) -> tuple[list[FieldRow], list[EdgeRow]]:
    fields = [
        field_row(field, said["fields"][at], f"$.fields[{at}]", clock) for at, field in enumerate(observation.fields)
    ]
    edges = [edge_row(edge, said["edges"][at], f"$.edges[{at}]", clock) for at, edge in enumerate(observation.edges)]
    return fields, edges


def _is_structured(observation: Observation) -> bool:
    """Whether the record says what to store, and is not only text to be understood."""
    names = observation.title or observation.topic_id or observation.topic_key
    return bool(names or observation.fields or observation.edges)


def _fill_in(observation: Observation, structured: bool) -> None:
    if observation.kind is None:
        observation.kind = "explicit_memory" if structured else "user_message"
    if observation.provenance is None:
        observation.provenance = "api" if structured else "import"


def _payload(said: dict[str, Any]) -> str | None:
    """Everything that has no column of its own, as canonical JSON."""
    keys = said.keys() - _PLAIN_KEYS
    if isinstance(said["scope"], dict):
        keys.add("scope")
    return canonical({key: said[key] for key in keys}).decode() if keys else None
