"""Serialisation of accesses as lines of a journal segment, and their validation when they are read.

A line is a JSON object that ends in a line feed: `topic_id`, `at` (ISO 8601, UTC) and `source`, optionally `fields`,
`failed` and `scope` (TYPE:ID). A line `{"segment": NAME}` is a heading: it makes the digests of segments with equal
accesses differ. Our own writer adds `crc32`, of the line without it, so that a changed line is refused; others may
leave it out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, NamedTuple
from zlib import crc32

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
"""Most bytes of a line."""

RECORD = ("topic_id", "at", "source", "fields", "failed", "scope")
"""The columns of a parsed access. Its time is text in canonical form."""

Record = tuple[str, str, str, list[str] | None, bool, str | None]

_REQUIRED = ("topic_id", "at", "source")
_Name = Annotated[str, Meta(max_length=1024)]


class AccessRecord(Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One access. Unknown keys are refused, since a misspelt `failed` would invert its meaning."""

    topic_id: _Name
    at: Annotated[str, Meta(max_length=64)]
    source: Annotated[str, Meta(max_length=256)]
    fields: Annotated[Sequence[_Name], Meta(max_length=1024)] | None = None
    failed: bool = False
    scope: _Name | None = None
    crc32: int | None = None


class ParsedLines(NamedTuple):
    """Parsed lines: accesses (columns RECORD) with their line numbers, and refusals."""

    lines: list[int]
    records: list[Record]
    refusals: list[Refusal]


def written(line: AccessRecord | dict[str, str]) -> bytes:
    """A line of a segment, with its line feed; of an access with its checksum."""
    checked = msgspec.structs.replace(line, crc32=_checksum(line)) if isinstance(line, AccessRecord) else line
    return msgspec.json.encode(checked) + b"\n"


def _checksum(access: AccessRecord) -> int:
    return crc32(msgspec.json.encode(msgspec.structs.replace(access, crc32=None)))


def heading(segment: str) -> dict[str, str]:
    """The first line of a segment."""
    return {"segment": segment}


def parse_lines(rows: Iterable[RawRow], newlines: int, clock: Clock) -> ParsedLines:
    """Parses lines of a segment independently of each other.

    Args:
        rows: raw lines.
        newlines: number of line feeds of the whole segment; a line after the last one is incomplete.
        clock: bounds times that lie in the future.
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
    """Parses one line.

    Args:
        raw: the line's bytes.
        clock: bounds times that lie in the future.

    Returns:
        The access (columns RECORD), its fields without repeats, None instead of an empty list; None for a heading.

    Raises:
        Rejection: the line is refused, with the reason.
    """
    content = without_nulls(decode_row(raw))
    if content.keys() == {"segment"}:
        return None
    for key in _REQUIRED:
        _require(content, key)
    record = _typed(content)
    if record.crc32 is not None and record.crc32 != (found := _checksum(record)):
        problem = f"$.crc32 is {record.crc32}, the line has {found}: it was changed after it was written"
        raise Rejection(Reason.BAD_VALUE, problem)
    at, scope = clock.spelling(record.at, "$.at"), _scope(record.scope)
    return record.topic_id, at, record.source, _fields(record.fields), record.failed, scope


def _check_whole(row: RawRow, newlines: int) -> None:
    if row.line > newlines:
        found = f"the segment ends after {row.length} bytes of this line, expected a line feed after every record"
        raise Rejection(Reason.TORN_LINE, f"{found}: the write was never acknowledged")
    if row.sha256 is not None:
        raise Rejection(Reason.LINE_TOO_LONG, f"the line has {row.length} bytes, expected at most {LONGEST_LINE}")


def _require(content: dict[str, Any], key: str) -> None:
    value = content.get(key, "")
    if isinstance(value, str) and not value.strip():
        found = f"$.{key} is {'blank' if key in content else 'missing'}"
        raise Rejection(Reason.MISSING_CONTENT, f"{found}, expected {', '.join(_REQUIRED)} in every record")


def _typed(content: dict[str, Any]) -> AccessRecord:
    try:
        return msgspec.convert(content, AccessRecord)
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
