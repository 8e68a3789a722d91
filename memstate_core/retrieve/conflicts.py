"""Conflicts: values of a field with the same valid time as the one shown, none of which supersedes the others.

The fold records the rivals of a revision, and since when a later assertion has settled the conflict.
"""

from __future__ import annotations

from typing import Any

import polars as pl
from msgspec import json as msgjson

from memstate_core.model.text import iso_expr

Conflicts = dict[tuple[str, str], list[dict[str, Any]]]
"""By topic and field, the other values in conflict: value, valid_from, provenance, evidence_ids."""

_SHOWN_CHARACTERS = 60


def open_rivals(newest: pl.DataFrame) -> pl.DataFrame:
    """The revisions that contradict the newest one of their field.

    Args:
        newest: the newest revision of each slot (columns REVISIONS).

    Returns:
        Columns topic_id, name and rival (the id of a revision), those of one field nearest first.
    """
    contradicted = newest.filter((pl.col("rivals").list.len() > 0) & pl.col("settled_at").is_null())
    return contradicted.select("topic_id", "name", rival="rivals").explode("rival")


def conflicting(newest: pl.DataFrame, revisions: pl.DataFrame) -> Conflicts:
    """The other values of each field that is in conflict.

    Args:
        newest: the newest revision of each slot (columns REVISIONS).
        revisions: columns REVISIONS; rivals that are not among them are left out.
    """
    rivals = open_rivals(newest)
    if rivals.is_empty():
        return {}
    described = revisions.select("value_json", iso_expr(pl.col("valid_from")), "provenance", "evidence_ids", rival="id")
    rivals = rivals.join(described, on="rival", maintain_order="left")
    found: Conflicts = {}
    for row in rivals.drop("rival").to_dicts():
        entry = {"value": msgjson.decode(row.pop("value_json"))}
        found.setdefault((row.pop("topic_id"), row.pop("name")), []).append(entry | row)
    return found


def conflict_warnings(newest: pl.DataFrame, conflicts: Conflicts) -> pl.DataFrame:
    """One warning for each field in conflict (columns topic_id, kind, message, field, related_topic_id)."""
    columns = ("topic_id", "kind", "message", "field", "related_topic_id")
    if not conflicts:
        return pl.DataFrame(schema=dict.fromkeys(columns, pl.String))
    keys = pl.DataFrame(list(conflicts), schema={"topic_id": pl.String, "name": pl.String}, orient="row")
    since = pl.col("valid_from").dt.strftime("%Y-%m-%d").alias("since")
    shown = newest.filter(pl.col("part") == "field").join(keys, on=["topic_id", "name"], maintain_order="left")
    rows = [
        (topic, "conflict", _message(name, since, [value, *_values(conflicts[topic, name])]), name, None)
        for topic, name, since, encoded in shown.select("topic_id", "name", since, "value_json").rows()
        for value in [msgjson.decode(encoded)]
    ]
    return pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.String), orient="row")


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
