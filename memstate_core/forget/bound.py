"""The bound on active topics per scope, `max_active_topics`, and what pins do to it.

A pin, set manually or by the policy, takes precedence over the bound: pinned topics are never archived, but count. A
night leaves no scope with more active topics than the bound, or than are pinned if those are more; all other topics of
such a scope are archived. The ladder applies the bound in `memstate_core.forget.archiving`; condition C5 checks it.
"""

from __future__ import annotations

import polars as pl

from memstate_core.policy.settings import Policy
from memstate_core.run.run import Run
from memstate_core.state.graph import TOPIC, open_graph


def is_pinned(policy: Policy) -> pl.Expr:
    """Whether a topic is pinned by a decision or by its kind (over the columns pinned and topic_kind), never null."""
    return pl.col("pinned").fill_null(False) | pl.col("topic_kind").is_in(policy.spared_kinds).fill_null(False)


def scopes_over_bound(run: Run) -> pl.DataFrame:
    """The scopes of a run's working graph with more active topics than the bound, as `over_bound` gives them."""
    with open_graph(run.graph, read_only=True) as graph:
        return over_bound(graph.read(TOPIC, ["scope", "state", "pinned"]), run.policy)


def over_bound(topics: pl.DataFrame, policy: Policy) -> pl.DataFrame:
    """The scopes with more active topics than the bound.

    Args:
        topics: columns scope, state and pinned (whether anything pins the topic).
        policy: gives the bound.

    Returns:
        Columns scope, active and pinned (how many of the active ones are), sorted by scope.
    """
    counts = topics.filter(pl.col("state") == "active").group_by("scope").agg(active=pl.len(), pinned=pl.sum("pinned"))
    counts = counts.with_columns(pl.col("active", "pinned").cast(pl.Int64))
    return counts.filter(pl.col("active") > policy.max_active_topics).sort("scope")


def over_bound_warnings(over: pl.DataFrame, policy: Policy) -> list[str]:
    """A sentence for each scope over the bound (columns scope and active)."""
    bound = policy.max_active_topics
    return [
        f"{scope} has {active:,} active topics and the bound is {bound:,} (max_active_topics): the next night archives"
        " others until it holds, restored topics last and pinned ones never. Unpin topics or raise the bound."
        for scope, active in over.select("scope", "active").rows()
    ]
