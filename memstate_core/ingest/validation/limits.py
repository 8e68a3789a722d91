"""The most that each part of an observation may hold, and the check of it.

One table for files, API requests and rows that still wait in the inbox: all of them are validated by
`memstate_core.ingest.validation.validate`. The limits are fixed, so that the result does not depend on the caller, and
far above what people and agents write; a value beyond them is a defect of the writer or an attack.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from memstate_core.ingest.reasons import Reason, Rejection
from memstate_core.model.forms.form import Form
from memstate_core.model.forms.registry import FORMS
from memstate_core.model.observation import Details, Observation
from memstate_core.model.parts import EdgeTo, FieldValue
from memstate_core.model.scope import parse_scope

_VALUE, _ARGUMENTS = "fields[].value", "details.arguments"

LIMITS: Mapping[str, int] = {
    "observation_id": 1_024,
    "scope.id": 1_024,
    "actor": 1_024,
    "session_id": 1_024,
    "source_uri": 8_192,
    "topic_id": 1_024,
    "topic_key": 1_024,
    "topic_kind": 256,
    "title": 2_000,
    "summary": 100_000,
    "text": 4_000_000,
    "fields": 1_000,
    "fields[].name": 1_024,
    _VALUE: 1_000_000,
    "fields[].ref_topic_id": 1_024,
    "fields[].why_changed": 10_000,
    "fields[].impact_expected": 10_000,
    "edges": 1_000,
    "edges[].kind": 256,
    "edges[].to_topic_id": 1_024,
    "edges[].to_topic_key": 1_024,
    "details.tool": 1_024,
    _ARGUMENTS: 100_000,
    "details.status": 256,
    "details.path": 8_192,
    "details.diff_summary": 100_000,
}
"""Characters of a string, of a value or arguments as JSON; elements of a list. A key is a path in the observation.

Forms of `memory` bring their own (`Form.LIMITS`), by the key of the form.
"""


def _lowest_first(prefix: str) -> Mapping[str, int]:
    """The limits of the paths directly below a prefix, but those of values and arguments, by the last key."""
    below = {path.removeprefix(prefix): limit for path, limit in LIMITS.items() if path.startswith(prefix)}
    own = {
        key: limit for key, limit in below.items() if key.isidentifier() and prefix + key not in (_VALUE, _ARGUMENTS)
    }
    return dict(sorted(own.items(), key=lambda item: item[1]))


_OWN = _lowest_first("")
_OF_PART = {part: _lowest_first(f"{part}[].") for part in ("fields", "edges")}
_OF_DETAILS = _lowest_first("details.")
_LEAST = min(*LIMITS.values(), *(limit for form in FORMS for limit in form.LIMITS.values()))


def check_limits(row: Observation, length: int) -> None:
    """Checks the strings and lists of an observation, values of fields excepted (`check_value`).

    Args:
        row: the observation, its types checked.
        length: the bytes of the row that it came from; no part of it can be longer.

    Raises:
        Rejection: field_too_long, naming the path, the length found and the limit.
    """
    if length <= _LEAST:
        return
    _check(row, _OWN, "$", length)
    if row.scope is not None:
        check_length(row.scope.id, LIMITS["scope.id"], "$.scope.id")
    if row.details is not None:
        _check_details(row.details, length)
    if row.memory is not None:
        _check_form(row.memory)
    for name, limits in _OF_PART.items():
        for at, part in enumerate(getattr(row, name)):
            _check(part, limits, f"$.{name}[{at}]", length)


def limited_scope(text: str) -> str:
    """Checks the `TYPE:ID` of rows that name no scope, with the same limit as for theirs, and returns it.

    Raises:
        ValueError: it is no scope, or its id is too long.
    """
    scope = parse_scope(text)
    try:
        check_length(scope.partition(":")[2], LIMITS["scope.id"], "the id of the scope")
    except Rejection as error:
        raise ValueError(error.detail) from error
    return scope


def check_value(value_json: str, where: str) -> None:
    """Checks a field's value as JSON.

    Raises:
        Rejection: field_too_long.
    """
    if len(value_json) > LIMITS[_VALUE]:  # asked for each field, so its path is written only if it is needed
        check_length(value_json, LIMITS[_VALUE], f"{where}.value")


def check_length(value: Any, limit: int, where: str) -> None:
    """Checks one string or list; anything else has no length.

    Raises:
        Rejection: field_too_long.
    """
    if isinstance(value, str | list) and len(value) > limit:
        unit = "characters" if isinstance(value, str) else "elements"
        raise Rejection(Reason.FIELD_TOO_LONG, f"{where} has {len(value):,} {unit}, expected at most {limit:,}")


def _check_details(details: Details, length: int) -> None:
    _check(details, _OF_DETAILS, "$.details", length)
    check_length(msgspec.json.encode(details.arguments).decode(), LIMITS[_ARGUMENTS], "$.details.arguments")


def _check_form(form: Form) -> None:
    for name, limit in form.LIMITS.items():
        if not name.endswith("[]"):
            check_length(getattr(form, name), limit, f"$.memory.{name}")
            continue
        for at, text in enumerate(getattr(form, name.removesuffix("[]")) or ()):
            check_length(text, limit, f"$.memory.{name.removesuffix('[]')}[{at}]")


def _check(
    record: Observation | FieldValue | EdgeTo | Details, limits: Mapping[str, int], where: str, length: int
) -> None:
    """Checks the parts of a record that the bytes of its row suffice for.

    Args:
        record: the record.
        limits: by the names of its parts, the lowest first.
        where: its path in the row.
        length: the bytes of the row.
    """
    for name, limit in limits.items():
        if limit >= length:
            return
        check_length(getattr(record, name), limit, f"{where}.{name}")
