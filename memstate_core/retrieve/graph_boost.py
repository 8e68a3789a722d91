"""The structural stage: topics with edges to the best candidates get a share of their scores.

A neighbour of a good candidate may be what the question is about without sharing a word with it: the team that an
incident is assigned to, a part of a whole. Its score is raised part of the way to that of its best neighbour, never
above it. Edges that only say that two topics occur together lift nobody (`tests/benchmarks/edges.py`).
"""

from __future__ import annotations

import polars as pl

DAMPING = 0.5
"""The share of the difference to its best neighbour's score that a topic gains."""

UNSPECIFIC = ("associated_with", "mentions")
"""Kinds of edges that name no relation; the segments of a conversation have no others."""


def boosted(topics: pl.DataFrame, best: pl.DataFrame, edges: pl.DataFrame) -> pl.DataFrame:
    """Topics with the scores that their edges to the best candidates give them.

    Args:
        topics: columns id, score and parts.
        best: the best candidates among them.
        edges: the edges of the best candidates (columns EDGES).

    Returns:
        The topics in the same order, `score` raised where a neighbouring candidate scores higher.
    """
    related = edges.filter(~pl.col("kind").is_in(UNSPECIFIC))
    parents = both_ways(related).join(best.select("id", parent="score"), on="id")
    offered = parents.group_by("neighbor_id").agg(pl.col("parent").max())
    boost = (DAMPING * (pl.col("parent") - pl.col("score"))).clip(0.0).fill_null(0.0)
    joined = topics.join(offered, left_on="id", right_on="neighbor_id", how="left", maintain_order="left")
    return joined.with_columns(pl.col("score") + boost, structure=boost).drop("parent")


def both_ways(edges: pl.DataFrame) -> pl.DataFrame:
    """Edges seen from either end: `id`, `neighbor_id`, `kind` and `direction` (out or in), in no particular order."""
    others = edges.filter(pl.col("from_id") != pl.col("to_id"))
    out = others.select("kind", id="from_id", neighbor_id="to_id", direction=pl.lit("out"))
    back = others.select("kind", id="to_id", neighbor_id="from_id", direction=pl.lit("in"))
    return pl.concat([out, back])


def neighbors_of(topics: pl.DataFrame, edges: pl.DataFrame, limit: int) -> pl.DataFrame:
    """The most salient neighbours of each topic.

    Args:
        topics: columns id, title and salience of every topic that may be listed.
        edges: columns EDGES.
        limit: the most neighbours of a topic.

    Returns:
        `id`, `topic_id` (the neighbour), `title`, `kind` and `direction`, most salient first.
    """
    named = both_ways(edges).join(topics.select("id", "title", "salience"), left_on="neighbor_id", right_on="id")
    order = ("id", "salience", "neighbor_id", "kind", "direction")
    ranked = named.sort(order, descending=[name == "salience" for name in order])
    kept = ranked.group_by("id", maintain_order=True).head(limit)
    return kept.select("id", "title", "kind", "direction", topic_id="neighbor_id")
