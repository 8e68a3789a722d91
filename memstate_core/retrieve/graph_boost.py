"""The structural stage: topics linked to the best candidates come nearer to them.

A topic that stands beside a good candidate may hold what the question is about without sharing a word
with it. It is lifted part of the way to its best neighbour's score, never above it.
"""

from __future__ import annotations

import polars as pl

DAMPING = 0.5
"""How much of the way from its own score to its best neighbour's a topic is lifted."""


def lifted(topics: pl.DataFrame, best: pl.DataFrame, edges: pl.DataFrame) -> pl.DataFrame:
    """Topics with the scores that their links to the best candidates give them.

    Args:
        topics: columns id, score and parts.
        best: the best candidates among them.
        edges: links that touch the best candidates (columns EDGES).

    Returns:
        The topics in the same order, `score` raised where a linked candidate scores higher.
    """
    parents = both_ways(edges).join(best.select("id", parent="score"), on="id")
    offered = parents.group_by("neighbor_id").agg(pl.col("parent").max())
    lift = (DAMPING * (pl.col("parent") - pl.col("score"))).clip(0.0).fill_null(0.0)
    joined = topics.join(offered, left_on="id", right_on="neighbor_id", how="left", maintain_order="left")
    return joined.with_columns(pl.col("score") + lift, structure=lift).drop("parent")


def both_ways(edges: pl.DataFrame) -> pl.DataFrame:
    """Links seen from either end: `id`, `neighbor_id`, `kind` and `direction` (out or in), in no particular order."""
    others = edges.filter(pl.col("from_id") != pl.col("to_id"))
    out = others.select("kind", id="from_id", neighbor_id="to_id", direction=pl.lit("out"))
    back = others.select("kind", id="to_id", neighbor_id="from_id", direction=pl.lit("in"))
    return pl.concat([out, back])


def neighbors_of(topics: pl.DataFrame, edges: pl.DataFrame, limit: int) -> pl.DataFrame:
    """The most salient neighbours of each topic.

    Args:
        topics: columns id, title and salience of every topic that may be named.
        edges: links (columns EDGES).
        limit: how many neighbours to keep for each topic.

    Returns:
        `id`, `topic_id` (the neighbour), `title`, `kind` and `direction`, most salient first.
    """
    named = both_ways(edges).join(topics.select("id", "title", "salience"), left_on="neighbor_id", right_on="id")
    order = ("id", "salience", "neighbor_id", "kind", "direction")
    ranked = named.sort(order, descending=[name == "salience" for name in order])
    kept = ranked.group_by("id", maintain_order=True).head(limit)
    return kept.select("id", "title", "kind", "direction", topic_id="neighbor_id")
