"""Conflicts: values of a field with the same valid time as the one shown, none of which supersedes the others.

The fold records the rivals of a revision, and since when a later assertion has settled the conflict.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import polars as pl
from msgspec import json as msgjson

Conflicts = dict[tuple[str, str], list[dict[str, Any]]]
"""By topic and field, the other values in conflict: value, valid_from, provenance, evidence_ids."""

_SHOWN_CHARACTERS = 60
_DAY = len("2026-04-22")


class RevisionRow(NamedTuple):
    """A row of the revisions, moments as text."""

    topic_id: str
    part: str
    name: str
    rank: int
    id: str
    value_json: str | None
    valid_from: str
    recorded_at: str
    provenance: str | None
    why_changed: str | None
    impact_expected: str | None
    confidence: float | None
    evidence_ids: list[str]
    summarises: int | None
    rivals: list[str] | None
    settled_at: str | None


Slot = tuple[str, str, str]
"""Topic, part and name."""

Slots = dict[Slot, list[RevisionRow]]
"""The revisions of each slot, newest first."""


def open_rivals(newest: pl.DataFrame) -> pl.DataFrame:
    """The revisions that contradict the newest one of their field.

    Args:
        newest: the newest revision of each slot (columns REVISIONS).

    Returns:
        Columns topic_id, name and rival (the id of a revision), those of one field nearest first.
    """
    contradicted = newest.filter((pl.col("rivals").list.len() > 0) & pl.col("settled_at").is_null())
    return contradicted.select("topic_id", "name", rival="rivals").explode("rival")


def conflicting(slots: Slots) -> Conflicts:
    """The other values of each field that is in conflict; rivals that are not among the revisions are left out.

    Args:
        slots: the revisions of each slot, newest first.
    """
    contradicted = {slot: rows[0].rivals for slot, rows in slots.items() if rows[0].rivals and not rows[0].settled_at}
    if not contradicted:
        return {}
    by_id = {row.id: row for rows in slots.values() for row in rows}
    found: Conflicts = {}
    for (topic, _, name), rivals in sorted(contradicted.items()):
        found.setdefault((topic, name), []).extend(_rival(by_id[rival]) for rival in rivals or () if rival in by_id)
    return {field: values for field, values in found.items() if values}


def _rival(row: RevisionRow) -> dict[str, Any]:
    return {
        "value": msgjson.decode(row.value_json or "null"),
        "valid_from": row.valid_from,
        "provenance": row.provenance,
        "evidence_ids": row.evidence_ids,
    }


def conflict_messages(slots: Slots, conflicts: Conflicts) -> Iterator[tuple[str, str, str]]:
    """The topic, the field and a sentence for each field in conflict, by topic and field."""
    for topic, name in sorted(conflicts):
        if newest := slots.get((topic, "field", name)):
            values = [msgjson.decode(newest[0].value_json or "null"), *_values(conflicts[topic, name])]
            yield topic, name, _message(name, newest[0].valid_from[:_DAY], values)


def plain(value: Any) -> str:
    """A value as text: a string unchanged, anything else as JSON."""
    return value if isinstance(value, str) else msgjson.encode(value).decode()


def _values(found: list[dict[str, Any]]) -> list[Any]:
    return [entry["value"] for entry in found]


def _message(name: str, since: str, values: list[Any]) -> str:
    return f"field {name} has {len(values)} values as of {since}: {', '.join(map(_short, values))}"


def _short(value: Any) -> str:
    text = " ".join(plain(value).split())
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 1] + "…"
