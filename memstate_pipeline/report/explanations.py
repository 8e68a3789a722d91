"""Explanations of archivals and restorations: sentences on thresholds, bounds, rules and pins."""

from __future__ import annotations

import polars as pl

from memstate_core.policy.settings import Policy
from memstate_core.state.fold.decisions import ARCHIVED, RESTORED
from memstate_core.state.fold.ladder_state import PAYLOAD
from memstate_pipeline.report.format import listed, number

_NAMED = 3


def explanations(topics: pl.DataFrame, decisions: pl.DataFrame, orders: pl.DataFrame, policy: Policy) -> list[str]:
    """Sentences for the page; empty if there is nothing to explain.

    Args:
        topics: the served topics (columns scope, state, pinned).
        decisions: the decisions of the run (columns DECISION).
        orders: the eviction orders of scopes over their bound (columns EVICTION_FITS).
        policy: the policy of the run.
    """
    active = topics.filter(pl.col("state") == "active").group_by("scope").agg(active=pl.len())
    moves = decisions.filter(pl.col("kind").is_in([ARCHIVED, RESTORED]))
    moved = moves.with_columns(_payload=pl.col("payload_json").str.json_decode(PAYLOAD)).unnest("_payload")
    archived = moved.filter(pl.col("kind") == ARCHIVED)
    return [
        *_under_limit(active, policy),
        *_faded(archived.filter(pl.col("by") == "threshold"), policy),
        *_over_the_bound(archived.filter(pl.col("by") == "bound"), policy),
        *_fitted(orders.filter(pl.col("hits") != pl.col("default_hits"))),
        *_ruled(archived.filter(pl.col("by") == "rule")),
        *_back(moved.filter(pl.col("kind") == RESTORED)),
        *_pinned(topics),
    ]


def _under_limit(active: pl.DataFrame, policy: Policy) -> list[str]:
    under = active.filter(pl.col("active") < policy.topic_count_soft_limit)
    if not under.height:
        return []
    return [
        f"{under.height:,} of {active.height:,} scopes hold fewer than {policy.topic_count_soft_limit:,} active topics "
        "(topic_count_soft_limit), so nothing in them is archived or detached, whatever its salience."
    ]


def _faded(archived: pl.DataFrame, policy: Policy) -> list[str]:
    if not archived.height:
        return []
    return [
        f"{number(archived.height)} faded topics of {_scopes(archived)} were archived: these scopes had "
        f"{policy.topic_count_soft_limit:,} active topics or more (topic_count_soft_limit), so topics with a salience "
        f"below the threshold are archived (forget_salience_threshold, {policy.forget_salience_threshold:g} without "
        "an override). They can still be read by id; new evidence or an access restores them."
    ]


def _over_the_bound(archived: pl.DataFrame, policy: Policy) -> list[str]:
    if not archived.height:
        return []
    return [
        f"{number(archived.height)} topics of {_scopes(archived)} were archived although they had not faded: these "
        f"scopes were over the bound of {policy.max_active_topics:,} active topics (max_active_topics). Pinned topics "
        "count towards it and stay; of the others, those least likely to be accessed were archived first."
    ]


def _fitted(orders: pl.DataFrame) -> list[str]:
    return [
        f"In {row['scope']} topics were ordered by a half-life of {number(row['half_life_days'])} days. It would have "
        f"kept the topics of {row['hits'] / row['requests']:.0%} of the accesses on its last {row['days']} days with "
        f"accesses; the half-life of the policy, {row['default_hits'] / row['requests']:.0%}."
        for row in orders.head(_NAMED).to_dicts()
    ]


def _ruled(archived: pl.DataFrame) -> list[str]:
    return [f"{number(archived.height)} topics were archived by rules."] if archived.height else []


def _back(restored: pl.DataFrame) -> list[str]:
    parts = [
        f"{number(rows.height)} because {why}"
        for by, why in (("evidence", "they have new evidence"), ("access", "they were accessed"))
        if (rows := restored.filter(pl.col("by") == by)).height
    ]
    return [f"Archived topics were restored: {listed(parts)}."] if parts else []


def _pinned(topics: pl.DataFrame) -> list[str]:
    pinned = topics.filter(pl.col("pinned") & (pl.col("state") != "merged")).height
    return [f"{number(pinned)} topics are pinned and stay active whatever their salience."] if pinned else []


def _scopes(rows: pl.DataFrame) -> str:
    """The scopes of some rows, those with the most rows first."""
    most = rows.group_by("scope").len().sort("len", "scope", descending=[True, False])["scope"].to_list()
    more = len(most) - _NAMED
    return listed(most[:_NAMED] + ([f"{number(more)} more"] if more > 0 else []))
