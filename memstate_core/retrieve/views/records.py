"""Records of topics as readers get them, built from frames in bulk."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

import polars as pl

from memstate_core.model.text import iso_expr
from memstate_core.retrieve.facts.facts import Facts, TopicSet, facts_of, read_edges, read_facts
from memstate_core.state.graph import REVIEW, Graph

if TYPE_CHECKING:
    from memstate_core.retrieve.past import Past

Record = dict[str, Any]
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
    older: pl.LazyFrame | None = None,
    moment: datetime | None = None,
) -> Iterator[Record]:
    """The records of some topics, in the order of the frame.

    Args:
        graph: an open graph.
        topics: the topics (columns TOPICS).
        within: a set that holds these topics, by which their facts are read.
        history: whole histories, newest first, instead of the newest revision.
        older: the revisions behind summaries, to return them instead of summaries in histories.
        moment: leave out values that begin later; None includes them.
    """
    facts = read_facts(graph, within, history=history, older=older, moment=moment)
    reviews = graph.read(REVIEW, ["topic_id", "reason", "cause_topic_id", "queued_at"], within.where(), **within.given)
    return _records(topics, facts, read_edges(graph, within), reviews, history)


def past_record(past: Past, topic_id: str, *, history: bool) -> Record:
    """The record of one topic as of a past moment."""
    topics, mine = past.topics.filter(pl.col("id") == topic_id), pl.col("topic_id") == topic_id
    tables = (past.fields, past.revisions, past.reviews)
    fields, revisions, reviews = (table.filter(mine) for table in tables)
    edges = past.edges.filter((pl.col("from_id") == topic_id) | (pl.col("to_id") == topic_id))
    return next(_records(topics, facts_of(fields, revisions, reviews, history=history), edges, reviews, history))


def _records(
    topics: pl.DataFrame, facts: Facts, edges: pl.DataFrame, reviews: pl.DataFrame, history: bool
) -> Iterator[Record]:
    by_topic, stale = _edges_by_topic(edges), _stale(reviews)
    moments = [iso_expr(pl.col(name)) for name in ("created_at", "updated_at")]
    for topic in topics.select(*_COLUMNS, *moments).to_dicts():
        record = topic | {"fields": facts.fields.get(topic["id"], {})}
        if history:
            record["topic_history"] = facts.topic_history.get(topic["id"], {})
        record |= {"edges": by_topic.get(topic["id"], []), "stale": stale.get(topic["id"])}
        yield record | {"warnings": facts.warnings.get(topic["id"], [])}


def _stale(reviews: pl.DataFrame) -> dict[str, dict[str, Any]]:
    """Open reviews by topic: `reason`, `cause_topic_id`, `since`."""
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
