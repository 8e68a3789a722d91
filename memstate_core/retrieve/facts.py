"""Facts of a set of topics: fields, histories, edges and open reviews, read from the graph set by set.

Frames become Python values here, at the edge of the output; nothing is queried topic by topic.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import polars as pl
from msgspec import json as msgjson

from memstate_core.model.text import iso_expr
from memstate_core.retrieve.conflicts import Conflicts, conflict_warnings, conflicting
from memstate_core.retrieve.index.facts_files import current_revisions
from memstate_core.state.graph import EDGE, FIELD, REVIEW, REVISION, Graph

Revision = dict[str, Any]
_REVISION_COLUMNS = ("provenance", "why_changed", "impact_expected", "confidence", "evidence_ids")


@dataclass(frozen=True)
class TopicSet:
    """Some topics, as a condition over the column that names them."""

    condition: str
    given: dict[str, Any]
    rows: pl.Expr
    """The same condition over the column `topic_id` of a frame."""

    @classmethod
    def of(cls, ids: list[str]) -> TopicSet:
        """The topics with these ids."""
        return cls("{column} IN $ids", {"ids": ids}, pl.col("topic_id").is_in(ids))

    @classmethod
    def between(cls, low: str, high: str) -> TopicSet:
        """The topics with ids from `low` to `high`, both included."""
        rows = pl.col("topic_id").is_between(pl.lit(low), pl.lit(high))
        return cls("{column} >= $low AND {column} <= $high", {"low": low, "high": high}, rows)

    def where(self, column: str = "r.topic_id") -> str:
        """The condition over this column."""
        return self.condition.format(column=column)


@dataclass(frozen=True)
class Facts:
    """Facts of some topics.

    Attributes:
        fields: by topic, its fields by name, each with `field_type`, `ref_topic_id`, `salience`, `detached`,
            `history` (revisions, newest first, never empty; a summary has `summarises`) and `conflict` (other
            values as of the same time as the newest, each with `value`, `valid_from`, `provenance`,
            `evidence_ids`; empty without any).
        topic_history: by topic, the histories of `title`, `summary` and `topic_kind` by name.
        warnings: by topic: `{kind, message, ...}`.
    """

    fields: dict[str, dict[str, dict[str, Any]]]
    topic_history: dict[str, dict[str, list[Revision]]]
    warnings: dict[str, list[dict[str, Any]]]


def read_facts(
    graph: Graph,
    topics: TopicSet,
    *,
    history: bool = False,
    older: pl.LazyFrame | None = None,
    detached: bool = True,
) -> Facts:
    """Reads the facts of some topics from the graph.

    Args:
        graph: an open graph.
        topics: which topics.
        history: all revisions instead of the newest one, and the histories of the topics themselves.
        older: the revisions behind summaries (columns REVISIONS), to read them instead of summaries.
        detached: include detached fields.
    """
    if history:
        revisions = graph.read(REVISION, where=topics.where(), **topics.given)
        if older is not None:
            own = revisions.filter(pl.col("summarises").is_null())
            revisions = pl.concat([own, older.filter(topics.rows).collect()])
    else:
        revisions = current_revisions(graph, topics.where(), **topics.given)
    fields = graph.read(FIELD, where=topics.where(), **topics.given)
    fields = fields if detached else fields.filter(~pl.col("detached"))
    reviews = graph.read(REVIEW, where=topics.where(), **topics.given)
    return facts_of(fields, revisions, reviews, history=history)


def facts_of(
    fields: pl.DataFrame,
    revisions: pl.DataFrame,
    reviews: pl.DataFrame,
    *,
    history: bool = False,
) -> Facts:
    """Facts from rows of the graph's tables, in any order.

    Args:
        fields: columns FIELDS.
        revisions: columns REVISIONS.
        reviews: columns REVIEWS.
        history: keep every revision of a field instead of the newest.
    """
    slot = ["topic_id", "part", "name"]
    revisions, fields = revisions.sort(*slot, "rank"), fields.sort("topic_id", "name")
    newest = revisions.unique(slot, keep="first", maintain_order=True)
    conflicts = conflicting(newest, revisions)
    histories = _histories(revisions if history else newest)
    warnings = _warnings(fields, conflict_warnings(newest, conflicts), reviews.sort("topic_id", "hops", "id"))
    return Facts(_fields(fields, histories, conflicts), _topic_histories(histories), warnings)


def read_edges(graph: Graph, topics: TopicSet, *, moment: datetime | None = None) -> pl.DataFrame:
    """The edges that start or end at some topics (columns EDGES), each once, sorted.

    Args:
        graph: an open graph.
        topics: which topics.
        moment: leave out edges that are not valid then; None keeps all.
    """
    ends = [graph.read(EDGE, where=topics.where(end), **topics.given) for end in ("a.id", "b.id")]
    edges = pl.concat(ends).unique(EDGE.key).sort(EDGE.key)
    return edges if moment is None else edges.filter(valid_at(moment))


def valid_at(moment: datetime) -> pl.Expr:
    """Whether an edge is valid at a moment; one without dates always is."""
    began = pl.col("valid_from").is_null() | (pl.col("valid_from") <= moment)
    return began & (pl.col("valid_until").is_null() | (pl.col("valid_until") > moment))


def _histories(revisions: pl.DataFrame) -> dict[tuple[str, str, str], list[Revision]]:
    """Revisions by topic, part and name, in the order given."""
    if not revisions.height:
        return {}
    entries = _entries(revisions)
    runs = revisions.with_row_index().group_by("topic_id", "part", "name").agg(pl.col("index").min(), pl.len())
    return {(topic, part, name): entries[low : low + count] for topic, part, name, low, count in runs.rows()}


def _entries(revisions: pl.DataFrame) -> list[Revision]:
    values = msgjson.decode("[" + ",".join(revisions["value_json"].fill_null("null")) + "]")
    moments = [iso_expr(pl.col(name)) for name in ("valid_from", "recorded_at")]
    rows = revisions.select("id", *moments, *_REVISION_COLUMNS, "summarises").to_dicts()
    return [_entry(row, value) for row, value in zip(rows, values, strict=True)]


def _entry(row: dict[str, Any], value: Any) -> Revision:
    summarises = row.pop("summarises")
    return {"id": row.pop("id"), "value": value, **row} | ({"summarises": summarises} if summarises else {})


def _fields(
    fields: pl.DataFrame, histories: dict[tuple[str, str, str], list[Revision]], conflicts: Conflicts
) -> dict[str, dict[str, dict[str, Any]]]:
    found: dict[str, dict[str, dict[str, Any]]] = {}
    rows = fields.select("topic_id", "name", "field_type", "ref_topic_id", "salience", "detached").to_dicts()
    for row in rows:
        topic, name = row.pop("topic_id"), row.pop("name")
        if history := histories.get((topic, "field", name)):
            contradicted = {"conflict": conflicts.get((topic, name), [])}
            found.setdefault(topic, {})[name] = {**row, "history": history, **contradicted}
    return found


def _topic_histories(histories: dict[tuple[str, str, str], list[Revision]]) -> dict[str, dict[str, list[Revision]]]:
    found: dict[str, dict[str, list[Revision]]] = {}
    for (topic, part, name), history in sorted(histories.items()):
        if part == "topic":
            found.setdefault(topic, {})[name] = history
    return found


def _warnings(fields: pl.DataFrame, conflicts: pl.DataFrame, reviews: pl.DataFrame) -> dict[str, list[dict[str, Any]]]:
    dangling = fields.filter(pl.col("ref_state") == "dangling").select(
        "topic_id",
        kind=pl.lit("dangling_reference"),
        message=pl.format("field {} refers to topic {}, which does not exist", "name", "ref_topic_id"),
        field="name",
        related_topic_id="ref_topic_id",
    )
    stale = reviews.select(
        "topic_id",
        kind=pl.lit("stale"),
        message="reason",
        field=pl.lit(None, pl.String),
        related_topic_id="cause_topic_id",
    )
    found: dict[str, list[dict[str, Any]]] = {}
    for warning in pl.concat([dangling, conflicts, stale]).to_dicts():
        found.setdefault(warning.pop("topic_id"), []).append(warning)
    return found
