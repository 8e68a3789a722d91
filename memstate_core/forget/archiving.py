"""Which topics are archived: those a rule selects, faded ones under pressure, and the lowest ranked over the bound.

A scope with fewer than `topic_count_soft_limit` active topics archives nothing unless a rule asks. From that count on,
topics below the archiving threshold are archived; a topic that a newer one supersedes already below the detaching
threshold; a topic that others depend on over extension edges stays with them. Over `max_active_topics` the
lowest ranked are archived until the bound holds: superseded topics first, then the rest, then those that active topics
depend on, then those that a person restored. Pinned topics are never archived, so pins may exceed the bound
(`memstate_core.forget.bound`), and a topic that was accessed since the last run does not fade in this one.
"""

from __future__ import annotations

import polars as pl

from memstate_core.policy.settings import Policy

_TIER = pl.when("held").then(3).when("depended_on").then(2).when("redundant").then(0).otherwise(1).alias("_tier")


def to_archive(topics: pl.DataFrame, dependence: pl.DataFrame, policy: Policy) -> pl.DataFrame:
    """Active topics with the reason to archive them, or null.

    Args:
        topics: the columns of `topic_features.governed` and `retention` (a rank within the scope; the lowest are
            archived first over the bound).
        dependence: columns base, dependent.
        policy: the limits.

    Returns:
        Columns topic_id, scope, salience, active, by (rule, threshold, bound or null) and reason (text or null), in
        eviction order within a scope.
    """
    active = topics.filter(pl.col("state") == "active")
    named = active.with_columns(
        _by_rule=(pl.col("action") == "archive").fill_null(False) & ~pl.col("pinned"),
        _faded=_is_faded(),
    )
    staying = _kept_by_dependents(named, dependence, policy)
    faded = pl.col("_faded") & ~pl.col("topic_id").is_in(staying.implode())
    leaving = named.with_columns(_faded=faded).with_columns(_goes=pl.col("_by_rule") | pl.col("_faded"), _surplus=False)
    ranked = _over_bound(leaving, policy)
    by = pl.when("_by_rule").then(pl.lit("rule")).when("_faded").then(pl.lit("threshold"))
    decided = ranked.with_columns(by=by.when("_surplus").then(pl.lit("bound")))
    return decided.select("topic_id", "scope", "salience", "active", "by", reason=_reason(policy))


def _is_faded() -> pl.Expr:
    limit = pl.when("redundant").then("theta_detach").otherwise("theta_archive")
    exempt = pl.col("pinned") | pl.col("held") | pl.col("accessed") | pl.col("action").is_not_null()
    return pl.col("pressure") & (pl.col("salience") < limit) & ~exempt


def _kept_by_dependents(topics: pl.DataFrame, dependence: pl.DataFrame, policy: Policy) -> pl.Series:
    """Faded topics that remaining topics depend on, directly or over up to `dependency_max_hops` hops."""
    staying = topics.filter(~pl.col("_faded") & ~pl.col("_by_rule"))["topic_id"]
    faded, kept = topics.filter("_faded")["topic_id"], staying.clear()
    for _ in range(policy.dependency_max_hops):
        bases = dependence.filter(pl.col("dependent").is_in(staying.implode()))["base"].unique()
        reached = faded.filter(faded.is_in(bases.implode()) & ~faded.is_in(kept.implode()))
        if not len(reached):
            break
        kept, staying = pl.concat([kept, reached]), reached
    return kept


def _over_bound(topics: pl.DataFrame, policy: Policy) -> pl.DataFrame:
    left = pl.len().cast(pl.Int64).over("scope") - pl.col("_goes").sum().over("scope")
    ranked = topics.with_columns(_TIER, _left=left).sort("scope", "pinned", "_goes", "_tier", "retention", "topic_id")
    movable = ~pl.col("pinned") & ~pl.col("_goes")
    place = movable.cum_sum().over("scope")
    surplus = movable & (place <= pl.col("_left") - policy.max_active_topics)
    return ranked.with_columns(_surplus=surplus)


def _reason(policy: Policy) -> pl.Expr:
    limit = pl.when("redundant").then("theta_detach").otherwise("theta_archive")
    superseded = pl.when("redundant").then(pl.lit(" and a newer topic supersedes it")).otherwise(pl.lit(""))
    low = pl.format("salience {} is below {} and the scope has {} active topics", "salience", limit, "active")
    many = pl.format("the scope has {} active topics, over the bound of {}", "active", pl.lit(policy.max_active_topics))
    ruled = pl.format("rule {} asks for it", "rule")
    return (
        pl.when("_by_rule").then(ruled).when("_faded").then(pl.concat_str(low, superseded)).when("_surplus").then(many)
    )
