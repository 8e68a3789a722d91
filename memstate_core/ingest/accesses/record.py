"""One use of a topic, as a line of a journal holds it: how it is written, and how it is read again.

A line is a JSON object that ends in a line feed: `topic_id`, `at` (ISO 8601, UTC) and `source`, and if need
be `fields`, `failed` and `scope` (TYPE:ID). A line `{"segment": NAME}` is no use: it makes segments differ
whose uses are alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta, Struct

from memstate_core.ingest.raw_rows import RawRow
from memstate_core.ingest.reasons import Reason, Rejection
from memstate_core.ingest.validation.decode import decode_row
from memstate_core.ingest.validation.quarantine import Refusal
from memstate_core.ingest.validation.timestamps import Clock
from memstate_core.ingest.validation.typed import without_nulls
from memstate_core.model.scope import parse_scope

LONGEST_LINE = 1 << 20
"""Bytes that a line may have."""

RECORD = ("topic_id", "at", "source", "fields", "failed", "scope")
"""The columns of a use that was read. Its time is text, in one spelling."""

Record = tuple[str, str, str, list[str] | None, bool, str | None]

_REQUIRED = ("topic_id", "at", "source")
_Name = Annotated[str, Meta(max_length=1024)]


class AccessRecord(Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One use. Unknown keys are refused, since a misspelt `failed` would turn blame into praise."""

    topic_id: _Name
    at: Annotated[str, Meta(max_length=64)]
    source: Annotated[str, Meta(max_length=256)]
    fields: Annotated[Sequence[_Name], Meta(max_length=1024)] | None = None
    failed: bool = False
    scope: _Name | None = None


class ParsedLines(NamedTuple):
    """What some lines hold: uses (columns RECORD) with the numbers of their lines, and what is refused."""

    lines: list[int]
    records: list[Record]
    refusals: list[Refusal]


def written(line: AccessRecord | dict[str, str]) -> bytes:
    """A line of a segment, with its line feed."""
    return msgspec.json.encode(line) + b"\n"


def heading(segment: str) -> dict[str, str]:
    """What the first line of a segment says."""
    return {"segment": segment}


def parse_lines(rows: Iterable[RawRow], newlines: int, clock: Clock) -> ParsedLines:
    """Reads lines of a segment, each on its own.

    Args:
        rows: lines as found.
        newlines: the line feeds of the whole segment; a line after the last of them was not finished.
        clock: what counts as the future.
    """
    parsed = ParsedLines([], [], [])
    for row in rows:
        try:
            _check_whole(row, newlines)
            record = read_access(row.raw, clock)
        except Rejection as refused:
            parsed.refusals.append(Refusal(row, refused.reason, refused.detail))
            continue
        if record is not None:
            parsed.lines.append(row.line)
            parsed.records.append(record)
    return parsed


def read_access(raw: bytes, clock: Clock) -> Record | None:
    """Reads one line.

    Args:
        raw: the line's bytes.
        clock: what counts as the future.

    Returns:
        The use (columns RECORD), every field named once and none where the list is empty; None for a line
        that only names its segment.

    Raises:
        Rejection: the line is refused; says why.
    """
    said = without_nulls(decode_row(raw))
    if said.keys() == {"segment"}:
        return None
    for key in _REQUIRED:
        _require(said, key)
    record = _typed(said)
    at, scope = clock.spelling(record.at, "$.at"), _scope(record.scope)
    return record.topic_id, at, record.source, _fields(record.fields), record.failed, scope


def _check_whole(row: RawRow, newlines: int) -> None:
    if row.line > newlines:
        found = f"the segment ends after {row.length} bytes of this line, expected a line feed after every record"
        raise Rejection(Reason.TORN_LINE, f"{found}: its writer was never told that it was safe")
    if row.sha256 is not None:
        raise Rejection(Reason.LINE_TOO_LONG, f"the line has {row.length} bytes, expected at most {LONGEST_LINE}")


def _require(said: dict[str, Any], key: str) -> None:
    value = said.get(key, "")
    if isinstance(value, str) and not value.strip():
        found = f"$.{key} is {'blank' if key in said else 'missing'}"
        raise Rejection(Reason.MISSING_CONTENT, f"{found}, expected {', '.join(_REQUIRED)} in every record")


def _typed(said: dict[str, Any]) -> AccessRecord:
    try:
        return msgspec.convert(said, AccessRecord)
    except msgspec.ValidationError as error:
        message = str(error)
        reason = Reason.BAD_VALUE if "of length" in message else Reason.WRONG_TYPE
        raise Rejection(reason, message[:1].lower() + message[1:]) from None


def _fields(names: Sequence[str] | None) -> list[str] | None:
    for place, name in enumerate(names or ()):
        if not name.strip():
            raise Rejection(Reason.BAD_VALUE, f"$.fields[{place}] is blank, expected the name of a field")
    return list(dict.fromkeys(names)) if names else None


def _scope(text: str | None) -> str | None:
    try:
        return None if text is None else parse_scope(text)
    except ValueError as error:
        raise Rejection(Reason.BAD_VALUE, f"$.scope: {error}") from None
