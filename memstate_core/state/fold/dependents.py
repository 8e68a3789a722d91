"""Dependence between topics: extension edges only, breadth first, within the caps of the policy (condition C3)."""

from __future__ import annotations

import polars as pl

from memstate_core.policy.settings import Policy
from memstate_core.state.fold.edges import EXTENSION_KINDS

_POINTING_DOWN = ("has_detail", "has_subtopic")
"""Extension kinds whose target depends on their source; the others point the other way."""


def dependents(edges: pl.DataFrame) -> pl.DataFrame:
    """Extension edges as dependence (columns base, dependent), each once.

    Args:
        edges: columns from_id, to_id, kind; those in force.
    """
    extension = edges.filter(pl.col("kind").is_in(EXTENSION_KINDS))
    down = pl.col("kind").is_in(_POINTING_DOWN)
    base, dependent = (
        pl.when(down).then("from_id").otherwise("to_id"),
        pl.when(down).then("to_id").otherwise("from_id"),
    )
    return extension.select(base=base, dependent=dependent).unique().sort("base", "dependent")


def affected(changed: pl.Series, dependence: pl.DataFrame, topics: pl.DataFrame, policy: Policy) -> pl.DataFrame:
    """Topics that depend on changed ones and did not change themselves, nearest first.

    Args:
        changed: topic ids.
        dependence: columns base, dependent.
        topics: the topics that may be queued (columns topic_id, scope).
        policy: gives the caps; the one on topics holds for each scope, so that no scope fills another's queue.

    Returns:
        Columns topic_id, cause_topic_id (the changed topic it depends on most directly), hops.
    """
    reached = pl.DataFrame({"topic_id": changed.unique().sort()}).with_columns(
        cause_topic_id="topic_id", hops=pl.lit(0, pl.Int64)
    )
    frontier = reached
    for hop in range(1, policy.dependency_max_hops + 1):
        step = frontier.join(dependence, left_on="topic_id", right_on="base")
        step = step.select(topic_id="dependent", cause_topic_id="cause_topic_id", hops=pl.lit(hop, pl.Int64))
        frontier = step.sort("topic_id", "cause_topic_id").unique("topic_id", keep="first", maintain_order=True)
        frontier = frontier.join(reached, on="topic_id", how="anti")
        if not frontier.height:
            break
        reached = pl.concat([reached, frontier])
    found = reached.filter(pl.col("hops") > 0)
    found = found.join(topics.select("topic_id", "scope"), on="topic_id", maintain_order="left")
    return found.filter(pl.int_range(pl.len()).over("scope") < policy.dependency_max_topics).drop("scope")
