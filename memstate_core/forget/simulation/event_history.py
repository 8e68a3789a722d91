"""The event history of a shard, as the simulation of a policy needs it: when topics got evidence and were accessed.

Topics have the titles and kinds, and edges the dates, that are served now; evidence and accesses belong to the topics
that answer now, so merges count as if they had always been made. Topics and fields are numbered in the order of their
ids, since numbers are joined and sorted much faster than text.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from memstate_core.model.ids import uuid_expr
from memstate_core.policy.settings import Policy
from memstate_core.run.run import GRAPH_FILE
from memstate_core.run.served_state import Served
from memstate_core.run.store import Store
from memstate_core.state.fold import decisions as decided
from memstate_core.state.fold.assertions import STATING, assertions
from memstate_core.state.fold.identity import answering
from memstate_core.state.fold.usage_events import access_events
from memstate_core.state.graph import EDGE, open_graph

_ENDS = ("from_id", "to_id")
_VALIDITY = ("valid_from", "valid_until")


@dataclass(frozen=True)
class EventHistory:
    """The events of a shard, independent of any policy. Numbers are UInt32, from 0 on.

    Attributes:
        topics: columns id (number), topic_id, scope, title, topic_kind, created_at; without tombstones.
        fields: columns id (number), topic_id (number), name, since (the time of its first value).
        evidence: columns topic_id (number), at (when it was observed).
        assertions: values of fields (columns ASSERTIONS) and field (number).
        accesses: accesses of these topics (columns ACCESS_EVENTS, topic_id a number); the policy gives their weight.
        edges: columns from_id, to_id (numbers), kind, since, valid_from, valid_until.
        decisions: recorded decisions in order (columns TRANSITIONS).
        merged: topics that were merged into others (columns dropped, survivor).
    """

    topics: pl.DataFrame
    fields: pl.DataFrame
    evidence: pl.DataFrame
    assertions: pl.DataFrame
    accesses: pl.DataFrame
    edges: pl.DataFrame
    decisions: pl.DataFrame
    merged: pl.DataFrame

    def numbered(self, rows: pl.DataFrame, *columns: str) -> pl.DataFrame:
        """Replaces ids of topics by their numbers; rows of other topics are dropped."""
        for column in columns or ("topic_id",):
            numbers = self.topics.select(pl.col("topic_id").alias(column), _number="id")
            rows = rows.join(numbers, on=column, maintain_order="left").drop(column).rename({"_number": column})
        return rows


def read_history(store: Store, served: Served) -> EventHistory:
    """Reads the event history of a shard: evidence up to its served snapshot, and accesses in the ledger.

    Accesses that are set aside are left out. Takes no lock and writes nothing.
    """
    topics, snapshot = served.topics, served.snapshot
    scanned = store.ledger.scan("evidence", snapshot.manifest.evidence_version).select(STATING)
    rows = scanned.join(served.evidence_topic.lazy().select("evidence_id"), on="evidence_id", how="semi").collect()
    is_merged = pl.col("merged_into").is_not_null()
    merged = topics.filter(is_merged).select(dropped="id", survivor="merged_into")
    segments = decided.segments(served.transitions)
    segments = segments.with_columns(topic_id=answering(pl.col("topic_id"), served.aliases, merged))
    aside = decided.set_aside(served.transitions)
    accesses = store.ledger.scan("accesses").filter(~pl.col("access_id").is_in(aside.implode())).collect()
    scopes = topics.select("scope", topic_id="id")
    with open_graph(snapshot.path / GRAPH_FILE, read_only=True) as graph:
        edges = graph.read(EDGE, [*EDGE.key, *_VALIDITY, "evidence_ids"])
    return event_history(
        topics=topics.filter(~is_merged),
        evidence=rows.join(served.evidence_topic, on="evidence_id").select("topic_id", at="observed_at"),
        values=assertions(rows, served.evidence_topic, segments).filter(pl.col("part") == "field"),
        accesses=access_events(accesses, served.aliases, merged, scopes, Policy()),
        edges=_dated(edges, rows),
        decisions=served.transitions,
        merged=merged,
    )


def event_history(
    topics: pl.DataFrame,
    evidence: pl.DataFrame,
    values: pl.DataFrame,
    accesses: pl.DataFrame,
    edges: pl.DataFrame,
    decisions: pl.DataFrame,
    merged: pl.DataFrame,
) -> EventHistory:
    """Builds an event history: numbers topics and fields.

    Args:
        topics: columns id, scope, title, topic_kind, created_at.
        evidence: columns topic_id, at.
        values: assertions of fields (columns ASSERTIONS).
        accesses: columns ACCESS_EVENTS.
        edges: columns from_id, to_id, kind, since, valid_from, valid_until.
        decisions: columns TRANSITIONS.
        merged: columns dropped, survivor.
    """
    named = topics.select("scope", "title", "topic_kind", "created_at", topic_id="id").sort("topic_id")
    none = pl.DataFrame()
    history = EventHistory(_numbered(named), none, none, none, none, none, decisions, merged)
    slots = values.group_by("topic_id", "name").agg(since=pl.col("observed_at").min())
    slots = _numbered(slots.sort(uuid_expr("field", pl.col("topic_id"), pl.col("name"))))
    keyed = slots.select("topic_id", "name", field="id")
    return EventHistory(
        topics=history.topics,
        fields=history.numbered(slots),
        evidence=history.numbered(evidence),
        assertions=values.join(keyed, on=["topic_id", "name"], maintain_order="left"),
        accesses=history.numbered(accesses),
        edges=history.numbered(edges, *_ENDS),
        decisions=decisions,
        merged=merged,
    )


def _numbered(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.with_row_index("id")


def _dated(edges: pl.DataFrame, evidence: pl.DataFrame) -> pl.DataFrame:
    """Edges with the time of their first evidence (columns from_id, to_id, kind, since, valid_from, valid_until)."""
    cited = edges.explode("evidence_ids", empty_as_null=True)
    cited = cited.join(evidence, left_on="evidence_ids", right_on="evidence_id")
    return cited.group_by(*EDGE.key, *_VALIDITY, maintain_order=True).agg(since=pl.col("observed_at").min())
