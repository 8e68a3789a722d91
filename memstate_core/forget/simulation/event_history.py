"""What a shard's ledger says of its past, as the rehearsal of a policy needs it: when what was said and used.

Topics are as they are served today, with today's titles and kinds; evidence and uses belong to the topics that
answer today, so merges are followed as if they had always been. Topics and fields are numbered in the order of
their ids, since numbers are joined and sorted much faster than text.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from memstate_core.model.frames import EVIDENCE, conform
from memstate_core.model.ids import uuid_expr
from memstate_core.policy.settings import Policy
from memstate_core.run.run import GRAPH_FILE
from memstate_core.run.served_state import Served
from memstate_core.run.store import Store
from memstate_core.state import decisions as decided
from memstate_core.state.assertions import claims
from memstate_core.state.graph import EDGE, open_graph
from memstate_core.state.identity import answering
from memstate_core.state.usage_events import uses

_EVIDENCE = (
    "evidence_id", "observed_at", "imported_at", "provenance", "title", "summary", "topic_kind", "fields",
)  # fmt: skip
_ENDS = ("from_id", "to_id")


@dataclass(frozen=True)
class Past:
    """A shard's past, policies left aside. Numbers are UInt32, from 0 on.

    Attributes:
        topics: columns id (number), topic_id, scope, title, topic_kind, created_at; tombstones left out.
        fields: columns id (number), topic_id (number), name, since (when it was first said).
        evidence: columns topic_id (number), at (when it was observed).
        claims: values of fields (columns ASSERTIONS) and field (number).
        used: uses of these topics (columns USES, topic_id a number); the weight is a policy's.
        edges: columns from_id, to_id (numbers), kind, since.
        decisions: recorded decisions in their order (columns TRANSITIONS).
        followed: topics that were merged away (columns dropped, survivor).
    """

    topics: pl.DataFrame
    fields: pl.DataFrame
    evidence: pl.DataFrame
    claims: pl.DataFrame
    used: pl.DataFrame
    edges: pl.DataFrame
    decisions: pl.DataFrame
    followed: pl.DataFrame

    def numbered(self, rows: pl.DataFrame, *columns: str) -> pl.DataFrame:
        """Rows with the numbers of topics in place of their ids; those of other topics are left out."""
        for column in columns or ("topic_id",):
            numbers = self.topics.select(pl.col("topic_id").alias(column), _number="id")
            rows = rows.join(numbers, on=column, maintain_order="left").drop(column).rename({"_number": column})
        return rows


def read_past(store: Store, served: Served) -> Past:
    """Reads the past of a shard: evidence up to its served snapshot, uses as far as the ledger has them.

    No lock is taken and nothing is written.
    """
    topics, snapshot = served.topics, served.snapshot
    scanned = store.ledger.scan("evidence", snapshot.manifest.evidence_version).select(_EVIDENCE)
    rows = scanned.join(served.links.lazy().select("evidence_id"), on="evidence_id", how="semi").collect()
    dead = pl.col("merged_into").is_not_null()
    followed = topics.filter(dead).select(dropped="id", survivor="merged_into")
    segments = decided.segments(served.transitions)
    segments = segments.with_columns(topic_id=answering(pl.col("topic_id"), served.aliases, followed))
    with open_graph(snapshot.path / GRAPH_FILE, read_only=True) as graph:
        edges = graph.read(EDGE, [*EDGE.key, "evidence_ids"])
    return past_of(
        topics=topics.filter(~dead),
        evidence=rows.join(served.links, on="evidence_id").select("topic_id", at="observed_at"),
        values=claims(conform(rows, EVIDENCE), served.links, segments).filter(pl.col("part") == "field"),
        used=uses(store.ledger.scan("accesses").collect(), served.aliases, followed, Policy()),
        edges=_dated(edges, rows),
        decisions=served.transitions,
        followed=followed,
    )


def past_of(
    topics: pl.DataFrame,
    evidence: pl.DataFrame,
    values: pl.DataFrame,
    used: pl.DataFrame,
    edges: pl.DataFrame,
    decisions: pl.DataFrame,
    followed: pl.DataFrame,
) -> Past:
    """Numbers topics and fields.

    Args:
        topics: columns id, scope, title, topic_kind, created_at.
        evidence: columns topic_id, at.
        values: claims of fields (columns ASSERTIONS).
        used: columns USES.
        edges: columns from_id, to_id, kind, since.
        decisions: columns TRANSITIONS.
        followed: columns dropped, survivor.
    """
    named = topics.select("scope", "title", "topic_kind", "created_at", topic_id="id").sort("topic_id")
    none = pl.DataFrame()
    past = Past(_counted_through(named), none, none, none, none, none, decisions, followed)
    slots = values.group_by("topic_id", "name").agg(since=pl.col("observed_at").min())
    slots = _counted_through(slots.sort(uuid_expr("field", pl.col("topic_id"), pl.col("name"))))
    keyed = slots.select("topic_id", "name", field="id")
    return Past(
        topics=past.topics,
        fields=past.numbered(slots),
        evidence=past.numbered(evidence),
        claims=values.join(keyed, on=["topic_id", "name"], maintain_order="left"),
        used=past.numbered(used),
        edges=past.numbered(edges, *_ENDS),
        decisions=decisions,
        followed=followed,
    )


def _counted_through(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.with_row_index("id")


def _dated(edges: pl.DataFrame, evidence: pl.DataFrame) -> pl.DataFrame:
    """Links with the time of their first evidence (columns from_id, to_id, kind, since)."""
    said = edges.explode("evidence_ids", empty_as_null=True)
    said = said.join(evidence, left_on="evidence_ids", right_on="evidence_id")
    return said.group_by(EDGE.key, maintain_order=True).agg(since=pl.col("observed_at").min())
