"""Why what is active is active: plain sentences about pressure, the bound, and what brought topics back."""

from __future__ import annotations

import polars as pl

from memstate_core.policy.settings import Policy
from memstate_core.state.decisions import ARCHIVED, RESTORED
from memstate_core.state.ladder_state import PAYLOAD
from memstate_pipeline.report.format import listed, number

_NAMED = 3


def explanations(topics: pl.DataFrame, decisions: pl.DataFrame, orders: pl.DataFrame, policy: Policy) -> list[str]:
    """Sentences for the page; none where there is nothing to explain.

    Args:
        topics: as they are served now (columns scope, state, pinned).
        decisions: this run's (columns DECISION).
        orders: by which curves scopes over their bound were ordered (columns EVICTION_FITS).
        policy: the run's.
    """
    active = topics.filter(pl.col("state") == "active").group_by("scope").agg(active=pl.len())
    told = decisions.filter(pl.col("kind").is_in([ARCHIVED, RESTORED]))
    moved = told.with_columns(_payload=pl.col("payload_json").str.json_decode(PAYLOAD)).unnest("_payload")
    archived = moved.filter(pl.col("kind") == ARCHIVED)
    return [
        *_calm(active, policy),
        *_faded(archived.filter(pl.col("by") == "threshold"), policy),
        *_over_the_bound(archived.filter(pl.col("by") == "bound"), policy),
        *_learnt(orders.filter(pl.col("hits") != pl.col("default_hits"))),
        *_ruled(archived.filter(pl.col("by") == "rule")),
        *_back(moved.filter(pl.col("kind") == RESTORED)),
        *_pinned(topics),
    ]


def _calm(active: pl.DataFrame, policy: Policy) -> list[str]:
    calm = active.filter(pl.col("active") < policy.topic_count_soft_limit)
    if not calm.height:
        return []
    return [
        f"{calm.height:,} of {active.height:,} scopes hold fewer than {policy.topic_count_soft_limit:,} active topics "
        "(topic_count_soft_limit), so nothing of them is archived or detached, however faded it is."
    ]


def _faded(archived: pl.DataFrame, policy: Policy) -> list[str]:
    if not archived.height:
        return []
    return [
        f"{number(archived.height)} faded topics of {_scopes(archived)} were archived: these scopes had "
        f"{policy.topic_count_soft_limit:,} active topics or more (topic_count_soft_limit), and from there on topics "
        f"go whose salience is below the threshold (forget_salience_threshold, {policy.forget_salience_threshold:g} "
        "unless an override says otherwise). An id still finds them; new evidence or use brings them back."
    ]


def _over_the_bound(archived: pl.DataFrame, policy: Policy) -> list[str]:
    if not archived.height:
        return []
    return [
        f"{number(archived.height)} topics of {_scopes(archived)} were archived although they had not faded, so that "
        f"no scope has more than {policy.max_active_topics:,} active topics (max_active_topics); the least needed "
        "went first."
    ]


def _learnt(orders: pl.DataFrame) -> list[str]:
    return [
        f"In {row['scope']} the least needed were told by a half-life of {number(row['half_life_days'])} days, which "
        f"would have answered {row['hits'] / row['requests']:.0%} of the uses of its last {row['days']} days with any, "
        f"against {row['default_hits'] / row['requests']:.0%} by the policy's own."
        for row in orders.head(_NAMED).to_dicts()
    ]


def _ruled(archived: pl.DataFrame) -> list[str]:
    return [f"{number(archived.height)} topics were archived because rules ask for it."] if archived.height else []


def _back(restored: pl.DataFrame) -> list[str]:
    parts = [
        f"{number(rows.height)} because {why}"
        for by, why in (("evidence", "new evidence names them"), ("access", "they were used"))
        if (rows := restored.filter(pl.col("by") == by)).height
    ]
    return [f"Archived topics came back: {listed(parts)}."] if parts else []


def _pinned(topics: pl.DataFrame) -> list[str]:
    pinned = topics.filter(pl.col("pinned") & (pl.col("state") != "merged")).height
    return [f"{number(pinned)} topics are pinned and stay whatever their salience."] if pinned else []


def _scopes(rows: pl.DataFrame) -> str:
    """The scopes of some rows, the one with the most first."""
    most = rows.group_by("scope").len().sort("len", "scope", descending=[True, False])["scope"].to_list()
    more = len(most) - _NAMED
    return listed(most[:_NAMED] + ([f"{number(more)} more"] if more > 0 else []))
