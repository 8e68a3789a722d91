"""Records of topics as readers get them, built from frames in bulk."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import polars as pl

from memstate_core.model.text import iso_expr
from memstate_core.retrieve.facts import Facts, TopicSet, read_edges, read_facts
from memstate_core.state.graph import REVIEW, Graph

Record = dict[str, Any]
OWN_PARTS = ("title", "summary", "topic_kind")
_COLUMNS = [
    "id", "scope", "title", "summary", "topic_kind", "salience", "failed_salience", "embedding_model", "text_hash",
    "state", "archived", "pinned", "merged_into",
]  # fmt: skip


def topic_records(
    graph: Graph,
    topics: pl.DataFrame,
    within: TopicSet,
    *,
    history: bool = False,
    as_of: datetime | None = None,
    older: pl.LazyFrame | None = None,
) -> Iterator[Record]:
    """The records of some topics, in the order of the frame.

    Args:
        graph: an open graph.
        topics: the topics (columns TOPICS).
        within: a set that holds these topics, by which their facts are read.
        history: whole histories, newest first, instead of the newest revision.
        as_of: everything as it was at this moment.
        older: the revisions behind summaries, to return them instead of summaries.
    """
    facts = read_facts(graph, within, history=history, as_of=as_of, older=older)
    edges = _edges_by_topic(read_edges(graph, within, moment=as_of))
    stale = _stale(graph, within)
    moments = [iso_expr(pl.col(name)) for name in ("created_at", "updated_at")]
    for topic in topics.select(*_COLUMNS, *moments).to_dicts():
        record = topic | as_it_was(facts, topic["id"], as_of) | {"fields": facts.fields.get(topic["id"], {})}
        if history:
            record["topic_history"] = facts.topic_history.get(topic["id"], {})
        record |= {"edges": edges.get(topic["id"], []), "stale": stale.get(topic["id"])}
        yield record | {"warnings": facts.warnings.get(topic["id"], [])}


def as_it_was(facts: Facts, topic_id: str, as_of: datetime | None) -> dict[str, Any]:
    """Title, summary and kind of a topic at that moment, as far as its history goes; empty without one."""
    own = facts.topic_history.get(topic_id, {}) if as_of else {}
    return {part: own[part][0]["value"] for part in OWN_PARTS if part in own}


def _stale(graph: Graph, within: TopicSet) -> dict[str, dict[str, Any]]:
    """Open reviews by topic: `reason`, `cause_topic_id`, `since`."""
    reviews = graph.read(REVIEW, ["topic_id", "reason", "cause_topic_id", "queued_at"], within.where(), **within.given)
    rows = reviews.select("topic_id", "reason", "cause_topic_id", since=iso_expr(pl.col("queued_at"))).to_dicts()
    return {row.pop("topic_id"): row for row in rows}


def _edges_by_topic(edges: pl.DataFrame) -> dict[str, list[dict[str, Any]]]:
    """Edges by each of their two topics."""
    named = edges.select(
        pl.col("from_id").alias("from"),
        pl.col("to_id").alias("to"),
        "kind",
        iso_expr(pl.col("valid_from")),
        iso_expr(pl.col("valid_until")),
        "evidence_ids",
        "detached",
    )
    found: dict[str, list[dict[str, Any]]] = {}
    for edge in named.to_dicts():
        for topic in dict.fromkeys((edge["from"], edge["to"])):
            found.setdefault(topic, []).append(edge)
    return found
