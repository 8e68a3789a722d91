"""Typed edges between topics, one for each (from, to, kind), and which of them are in force at a moment.

An edge is in force from `valid_from` on until just before `valid_until`. Outside of that it is history: it is kept and
shown with its dates, and nothing is decided by it.
"""

from __future__ import annotations

from datetime import datetime

import polars as pl

from memstate_core.model.frames import MOMENT, Schema, conform, project
from memstate_core.model.graph_tables import EDGES
from memstate_core.model.ids import key_id
from memstate_core.model.step_frames import PROBLEMS
from memstate_core.state.fold.identity import answering
from memstate_core.state.graph import EDGE, Graph

_STATED: Schema = {
    **dict.fromkeys(("scope", "evidence_id", "from_id", "kind", "to_topic_id", "to_topic_key", "_named"), pl.String),
    **dict.fromkeys(("valid_from", "valid_until", "observed_at"), MOMENT),
    "_position": pl.Int64,
}
EXTENSION_KINDS = ("has_detail", "has_subtopic", "part_of", "extends", "derives")
"""Kinds over which a change in one topic concerns the other; every other kind is an association."""


def valid_at(moment: datetime) -> pl.Expr:
    """Whether an edge (columns EDGES) is in force at a moment; one without a date has no bound on that side."""
    began = pl.col("valid_from").is_null() | (pl.col("valid_from") <= moment)
    return began & (pl.col("valid_until").is_null() | (pl.col("valid_until") > moment))


def edges_at(graph: Graph, moment: datetime) -> pl.DataFrame:
    """The edges of a graph that are in force at a moment (columns from_id, to_id, kind)."""
    edges = graph.read(EDGE, [*EDGE.key, "valid_from", "valid_until"])
    return edges.filter(valid_at(moment)).select(EDGE.key)


def fold_edges(
    evidence: pl.DataFrame,
    evidence_topic: pl.DataFrame,
    segments: pl.DataFrame,
    topics: pl.DataFrame,
    aliases: pl.DataFrame,
    followed: pl.DataFrame,
    until: datetime | None = None,
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Edges (columns EDGES), and dangling ones (columns PROBLEMS).

    Args:
        evidence: columns EVIDENCE.
        evidence_topic: the topic of each piece (columns evidence_id, topic_id).
        segments: columns SEGMENTS, with the topics that they ended up in.
        topics: every topic that exists (columns id, scope); an edge never leaves its scope.
        aliases: columns ALIASES.
        followed: columns dropped, survivor.
        until: ignore assertions of edges that became true after this moment.

    An edge is valid from the earliest time given until the end that the newest observation states. Self-edges that
    result from merges are left out.
    """
    with_edges = segments.filter(pl.col("links").list.len() > 0)
    of_segments = [_of_segments(with_edges)] if with_edges.height else []
    stated = (
        pl.concat([_of_evidence(evidence, evidence_topic), *of_segments])
        .with_columns(to_id=answering(pl.col("_named"), aliases, followed))
        .join(topics.select(to_id="id", scope="scope", _exists=pl.lit(True)), on=["to_id", "scope"], how="left")
        .filter(pl.col("to_id") != pl.col("from_id"))
    )
    stated = stated if until is None else stated.filter(pl.col("valid_from") <= until)
    edges = (
        stated.filter(pl.col("_exists"))
        .sort("from_id", "to_id", "kind", "observed_at", "evidence_id", "_position")
        .group_by("from_id", "to_id", "kind", maintain_order=True)
        .agg(
            pl.col("valid_from").min(),
            pl.col("valid_until").last(),
            evidence_ids=pl.col("evidence_id").unique().sort(),
        )
    )
    named = pl.coalesce("to_topic_key", "to_topic_id")
    dangling = stated.filter(pl.col("_exists").is_null()).select(
        kind=pl.lit("dangling_edge"),
        topic_id="from_id",
        detail=pl.format("{} to {}, which no observation has named yet", "kind", named),
    )
    return project(edges, EDGES, nulls=("detached",)), conform(dangling.unique().sort(pl.all()), PROBLEMS)


def _of_evidence(evidence: pl.DataFrame, evidence_topic: pl.DataFrame) -> pl.DataFrame:
    stated = (
        evidence.filter(pl.col("edges").list.len() > 0)
        .select("evidence_id", "scope", "observed_at", "edges")
        .join(evidence_topic.select("evidence_id", from_id="topic_id"), on="evidence_id")
        .with_columns(_position=pl.int_ranges(0, pl.col("edges").list.len()))
        .explode("edges", "_position")
        .unnest("edges")
        .with_columns(
            _named=pl.coalesce("to_topic_id", key_id(pl.col("scope"), pl.col("to_topic_key"))),
            valid_from=pl.coalesce("valid_from", "observed_at"),
        )
    )
    return project(stated, _STATED)


def _of_segments(segments: pl.DataFrame) -> pl.DataFrame:
    """Each edge of a segment, one row per turn of the segment, since all of them are its evidence."""
    stated = (
        segments.select(
            "scope", "links", "evidence_ids", from_id="topic_id", valid_from="began_at", observed_at="ended_at"
        )
        .with_columns(_position=pl.int_ranges(0, pl.col("links").list.len()))
        .explode("links", "_position")
        .unnest("links")
        .with_columns(_named="to_topic_id", evidence_id="evidence_ids")
        .explode("evidence_id")
    )
    return project(stated, _STATED, nulls=("to_topic_key", "valid_until"))
