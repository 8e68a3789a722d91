"""Validation of the fields and edges of a record.

Invariant: a value that does not fit its declared type is refused, never silently coerced. Two conversions are not
coercion: an integer is a valid float, and a bare number or boolean without a declared type is kept as its JSON text,
since no type means string.
"""

from __future__ import annotations

from typing import Any

import msgspec

from memstate_core.ingest.reasons import Reason, Rejection
from memstate_core.ingest.validation.decode import JSON_NAMES
from memstate_core.ingest.validation.limits import check_value
from memstate_core.ingest.validation.timestamps import Clock
from memstate_core.model.parts import EdgeTo, FieldValue

FieldRow = tuple[str, str, str, bool, str | None, str | None, str | None, float | None, str | None]
"""One field in the order of `memstate_core.model.ledger_tables.FIELD_VALUE`; its time as text."""

EdgeRow = tuple[str, str | None, str | None, str | None, str | None]
"""One edge in the order of `memstate_core.model.ledger_tables.EDGE_TO`; its times as text."""

canonical = msgspec.json.Encoder(order="sorted").encode
"""JSON with sorted keys and no white space: equal content gives equal bytes."""

_FITS: dict[str, tuple[frozenset[type], str]] = {
    "string": (frozenset({str}), "a JSON string"),
    "int": (frozenset({int}), "a JSON integer"),
    "float": (frozenset({int, float}), "a JSON number"),
    "bool": (frozenset({bool}), "true or false"),
    "date": (frozenset({str}), "a JSON string"),
    "datetime": (frozenset({str}), "a JSON string"),
    "list": (frozenset({list}), "a JSON array"),
}

_DATES = ("date", "datetime")


def field_row(field: FieldValue, content: dict[str, Any], where: str, clock: Clock) -> FieldRow:
    """Validates one field, and replaces its time in `content` by the canonical form.

    Args:
        field: the typed field.
        content: the same field as a JSON object.
        where: its path in the record, such as `$.fields[1]`.
        clock: bounds times that lie in the future.

    Raises:
        Rejection: wrong_type, bad_value, field_too_long, bad_time or future_time.
    """
    if not field.name.strip():
        raise Rejection(Reason.WRONG_TYPE, f"{where}.name is blank, expected a name")
    reference = None if field.ref_topic_id is msgspec.UNSET else field.ref_topic_id
    if reference is not None and not reference.strip():
        expected = "a topic id, null to clear the reference, or no such key to keep it"
        raise Rejection(Reason.WRONG_TYPE, f"{where}.ref_topic_id is blank, expected {expected}")
    if field.confidence is not None and not 0 <= field.confidence <= 1:
        expected = "a number between 0 and 1"
        raise Rejection(Reason.BAD_VALUE, f"{where}.confidence is {field.confidence}, expected {expected}")
    value_json = _value_json(field, where)
    _check_date(field, where)
    check_value(value_json, where)
    return (
        field.name,
        value_json,
        field.field_type or "string",
        field.ref_topic_id is not msgspec.UNSET,
        reference,
        field.why_changed,
        field.impact_expected,
        field.confidence,
        clock.respell("valid_from", content, where),
    )


def edge_row(edge: EdgeTo, content: dict[str, Any], where: str, clock: Clock) -> EdgeRow:
    """Validates one edge, and replaces its times in `content` by the canonical form.

    Raises:
        Rejection: wrong_type, missing_content, bad_time or future_time.
    """
    if not edge.kind.strip():
        raise Rejection(Reason.WRONG_TYPE, f"{where}.kind is blank, expected a kind such as part_of")
    to_id, to_key = given(edge.to_topic_id), given(edge.to_topic_key)
    if to_id is None and to_key is None:
        expected = "to_topic_id or to_topic_key"
        raise Rejection(Reason.MISSING_CONTENT, f"{where} names no topic that it leads to, expected {expected}")
    start = clock.respell("valid_from", content, where)
    return edge.kind, to_id, to_key, start, clock.respell("valid_until", content, where, open_end=True)


def given(text: str | None) -> str | None:
    """The text, or None if it is blank."""
    return text if text is not None and text.strip() else None


def _value_json(field: FieldValue, where: str) -> str:
    value, declared = field.value, field.field_type
    if value is None or declared == "json":
        return canonical(value).decode()
    if declared is None:
        return _untyped(value, where)
    fits, expected = _FITS[declared]
    if type(value) not in fits:
        found = f"{where}.value is {_shown(value)}"
        raise Rejection(Reason.BAD_VALUE, f"{found}, but its field_type {declared} expects {expected}")
    if declared == "float" and isinstance(value, int):
        value = _widened(value, where)
    return canonical(value).decode()


def _check_date(field: FieldValue, where: str) -> None:
    """Refuses a date without a digit, such as "now": it would mean another day at every reading.

    Dates are not parsed further: "14 April" is as good as "2026-04-14".
    """
    if field.field_type in _DATES and isinstance(field.value, str) and not any(map(str.isdigit, field.value)):
        expected = "a date by itself, such as 2026-04-22 or 2026-04-22T12:00:00Z"
        found = f"{where}.value is {_shown(field.value)}"
        raise Rejection(Reason.BAD_VALUE, f"{found}, but its field_type {field.field_type} expects {expected}")


def _untyped(value: object, where: str) -> str:
    if isinstance(value, list | dict):
        expected = "field_type list or json to go with it (no field_type means string)"
        raise Rejection(Reason.BAD_VALUE, f"{where}.value is {_shown(value)}, expected {expected}")
    return canonical(value if isinstance(value, str) else canonical(value).decode()).decode()


def _widened(value: int, where: str) -> float:
    try:
        return float(value)
    except OverflowError:
        detail = f"{where}.value is too large for field_type float, expected at most 1.8e308"
        raise Rejection(Reason.BAD_VALUE, detail) from None


def _shown(value: object) -> str:
    text = canonical(value[:100] if isinstance(value, str) else value).decode()
    return f"{JSON_NAMES[type(value)]} ({text if len(text) <= 100 else text[:100] + '…'})"
