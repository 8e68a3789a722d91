"""The entries of an answer, ready for JSON: candidates with their fields, evidence, and a few plain lines."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import polars as pl

from memstate_core.model.text import iso_expr
from memstate_core.retrieve.conflicts import plain
from memstate_core.retrieve.facts import Facts

Entry = dict[str, Any]
_SUMMARY_TOPICS = 3
_SUMMARY_FIELDS = 6
_DETAILS = ("tool", "status", "path")
_IF_THERE = ("replaced_by", *_DETAILS)
_DIGITS = 6


def candidate_entries(
    topics: pl.DataFrame,
    facts: Facts,
    neighbors: pl.DataFrame,
    *,
    field_names: Collection[str],
    explain: bool,
) -> dict[str, Entry]:
    """Candidates by id.

    Args:
        topics: scored topics (columns TOPIC_COLUMNS, score, similarity, structure; parts where explained).
        facts: their facts.
        neighbors: the result of `neighbors_of`.
        field_names: include these fields only; all when empty.
        explain: add the parts of each score.
    """
    by_topic: dict[str, list[Entry]] = {}
    for neighbor in neighbors.to_dicts():
        by_topic.setdefault(neighbor.pop("id"), []).append(neighbor)
    return {
        topic["id"]: _candidate(topic, facts, by_topic.get(topic["id"], []), field_names)
        | (_explained(topic, {"structure": topic["structure"]}) if explain else {})
        for topic in topics.to_dicts()
    }


def _candidate(topic: Entry, facts: Facts, neighbors: list[Entry], field_names: Collection[str]) -> Entry:
    topic_id = topic["id"]
    own = ("title", "summary", "topic_kind", "scope", "state", "salience", "failed_salience")
    similarity = topic["similarity"]
    return (
        {"topic_id": topic_id}
        | {name: topic[name] for name in own}
        | {
            "similarity": None if similarity is None else round(similarity, _DIGITS),
            "neighbors": neighbors,
            "fields": _fields(facts, topic_id, field_names),
            "warnings": [*facts.warnings.get(topic_id, [])],
        }
    )


def _fields(facts: Facts, topic_id: str, names: Collection[str]) -> list[Entry]:
    return [
        {
            "name": name,
            "field_type": field["field_type"],
            "ref_topic_id": field["ref_topic_id"],
            "current": {**field["history"][0]},
            "conflict": [*field["conflict"]],
            "history": field["history"][1:],
        }
        for name, field in facts.fields.get(topic_id, {}).items()
        if not names or name in names
    ]


def evidence_entries(evidence: pl.DataFrame, *, explain: bool) -> list[Entry]:
    """Evidence in the order of the frame (columns EVIDENCE_INDEX, score; parts where explained)."""
    observed = iso_expr(pl.col("observed_at"))
    explained = ("parts",) if explain else ()
    rows = evidence.select(
        "observation_id",
        "text",
        observed,
        "topic_id",
        "score",
        "actor",
        "session_id",
        "replaced_by",
        "kind",
        *_DETAILS,
        *explained,
    ).to_dicts()
    return [
        {name: value for name, value in row.items() if name != "parts" and (name not in _IF_THERE or value)}
        | {"score": round(row["score"], _DIGITS)}
        | (_explained(row, {}) if explain else {})
        for row in rows
    ]


def _explained(row: Entry, further: dict[str, float]) -> Entry:
    parts = {name: round(value, _DIGITS) for name, value in (row["parts"] | further).items()}
    return {"explain": {"score": round(row["score"], _DIGITS), "parts": parts}}


def summary_text(candidates: list[Entry]) -> str:
    """The first candidates with their current fields, one plain line each."""
    return "\n".join(_line(entry) for entry in candidates[:_SUMMARY_TOPICS]) or "No topic is known here."


def _line(entry: Entry) -> str:
    shown = [f"{field['name']}: {_shown(field)}" for field in entry["fields"][:_SUMMARY_FIELDS]]
    kind = f" ({entry['topic_kind']})" if entry["topic_kind"] else ""
    return f"{entry['title']}{kind}: {'; '.join(shown) or entry['summary'] or 'nothing recorded'}"


def _shown(field: Entry) -> str:
    others = ", ".join(plain(other["value"]) for other in field["conflict"])
    return plain(field["current"]["value"]) + (f" (in conflict with {others})" if others else "")
