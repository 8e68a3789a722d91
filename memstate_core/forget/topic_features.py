"""Where each topic stands when the ladder looks at it: one row a topic, with all that policy may ask about.

The columns are those that the conditions of rules name (`memstate_core.policy.rules.RULE_COLUMNS`) and what
the ladder itself needs. They are worked out set by set; nothing is asked topic by topic.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import polars as pl

from memstate_core.forget.bound import is_pinned
from memstate_core.model.frames import LINKS
from memstate_core.model.text import iso_expr
from memstate_core.policy.overrides import value_for
from memstate_core.policy.rules import governing
from memstate_core.policy.settings import Policy
from memstate_core.run.run import Run
from memstate_core.state.dependents import dependents
from memstate_core.state.graph import EDGE, FIELD, TOPIC, Graph
from memstate_core.state.ladder_state import Rungs

TOPIC_COLUMNS = [
    "id", "scope", "title", "topic_kind", "state", "salience", "failed_salience", "half_life_days", "reinforced_at",
    "created_at", "pinned",
]  # fmt: skip
_DAY = 86_400_000_000
THRESHOLDS = {
    "theta_summarise": "summarise_salience_threshold",
    "theta_detach": "detach_salience_threshold",
    "theta_archive": "forget_salience_threshold",
}
"""Columns of the thresholds that hold for a topic, and the policy keys they come from."""


@dataclass(frozen=True)
class Known:
    """What is known of topics at a time.

    Attributes:
        topics: columns TOPIC_COLUMNS, tombstones left out; salience as of that time.
        evidence: how many pieces of evidence each topic has (columns topic_id, evidence).
        fields: how many fields each has (columns topic_id, fields).
        edges: columns from_id, to_id, kind.
        held: topics that a person brought back (columns topic_id, last_event_at, as of `Rungs`).
    """

    topics: pl.DataFrame
    evidence: pl.DataFrame
    fields: pl.DataFrame
    edges: pl.DataFrame
    held: pl.DataFrame


def standing(graph: Graph, run: Run, told: pl.Series, used: pl.Series, stand: Rungs) -> pl.DataFrame:
    """Every topic of the working graph that is not a tombstone; see `standing_of`.

    Its state is that of the decisions, not of the graph, so that the ladder can be taken again after a crash.

    Args:
        graph: the working graph, with salience at the run's logical time.
        run: gives the time, the policy and the links of evidence.
        told: topics that got new evidence in this run.
        used: topics that were used since the last run.
        stand: where earlier decisions left topics.
    """
    archived = pl.col("id").is_in(stand.archived["topic_id"].implode())
    state = pl.when(archived).then(pl.lit("archived")).otherwise(pl.lit("active"))
    topics = graph.read(TOPIC, TOPIC_COLUMNS, "r.state <> 'merged'").with_columns(state=state)
    fields, edges = graph.read(FIELD, ["topic_id"]), graph.read(EDGE, ["from_id", "to_id", "kind"])
    evidence = counted(run.table("links", LINKS), "evidence")
    known = Known(topics, evidence, counted(fields, "fields"), edges, stand.held)
    return standing_of(known, run.facts.now, run.policy, told, used)


def standing_of(known: Known, now: datetime, policy: Policy, told: pl.Series, used: pl.Series) -> pl.DataFrame:
    """Every topic, sorted by id.

    Args:
        known: the topics and what belongs to them.
        now: the time.
        policy: gives the limits and thresholds.
        told: topics with new evidence.
        used: topics that were used.

    Returns:
        Columns topic_id, scope, scope_type, topic_kind, title, state (as it is once what was told or used came
        back), was (the state before that), salience, failed_salience, half_life_days, age_days, idle_days,
        evidence, fields, active (active topics in the scope), pressure, pinned, held, told, used, depended_on,
        redundant, and the thresholds that hold.
    """
    ids = pl.col("topic_id")
    marked = known.topics.rename({"id": "topic_id"}).sort("topic_id")
    marked = marked.with_columns(
        told=ids.is_in(told.implode()),
        used=ids.is_in(used.implode()),
        pinned=is_pinned(policy),
        held=ids.is_in(_held(marked, known.held).implode()),
        was="state",
    )
    back = (pl.col("state") == "archived") & (pl.col("told") | pl.col("used"))
    marked = marked.with_columns(state=pl.when(back).then(pl.lit("active")).otherwise("state"))
    for counts in (known.evidence, known.fields):
        marked = marked.join(counts, on="topic_id", how="left", maintain_order="left")
    active = (pl.col("state") == "active").sum().cast(pl.Int64).over("scope")
    return (
        _tied(marked, known.edges)
        .with_columns(
            scope_type=pl.col("scope").str.split(":").list.first(),
            age_days=_days("created_at", now),
            idle_days=_days("reinforced_at", now),
            active=active,
            pressure=active >= policy.topic_count_soft_limit,
            **{name: pl.col(name).fill_null(0) for name in ("evidence", "fields")},
            **{column: value_for(key, policy) for column, key in THRESHOLDS.items()},
        )
        .drop("created_at", "reinforced_at")
    )


def governed(topics: pl.DataFrame, policy: Policy) -> pl.DataFrame:
    """What `standing_of` gives, with `rule` and `action` (what governs a topic, or null).

    A topic that a rule pins counts as pinned.
    """
    ruled = governing(topics, policy.rules)
    return ruled.with_columns(pinned=pl.col("pinned") | (pl.col("action") == "pin").fill_null(False))


def counted(rows: pl.DataFrame, name: str) -> pl.DataFrame:
    """How many rows each topic has (columns topic_id and the name)."""
    return rows.group_by("topic_id").agg(pl.len().cast(pl.Int64).alias(name))


def dependence(graph: Graph) -> pl.DataFrame:
    """What depends on what over extension edges (columns base, dependent)."""
    return dependents(graph.read(EDGE, ["from_id", "to_id", "kind"]))


def _held(topics: pl.DataFrame, held: pl.DataFrame) -> pl.Series:
    """Topics that a person brought back and that no event has concerned since."""
    known = topics.select("topic_id", "reinforced_at").join(held, on="topic_id")
    return known.filter(iso_expr(pl.col("reinforced_at")) == pl.col("last_event_at"))["topic_id"]


def _tied(topics: pl.DataFrame, edges: pl.DataFrame) -> pl.DataFrame:
    """With which topics active ones depend on (`depended_on`), and which an active one supersedes (`redundant`)."""
    active = topics.filter(pl.col("state") == "active")["topic_id"].implode()
    bases = dependents(edges).filter(pl.col("dependent").is_in(active))["base"].unique()
    newer = (pl.col("kind") == "supersedes") & pl.col("from_id").is_in(active)
    covered = edges.filter(newer)["to_id"].unique()
    ids = pl.col("topic_id")
    return topics.with_columns(depended_on=ids.is_in(bases.implode()), redundant=ids.is_in(covered.implode()))


def _days(column: str, now: datetime) -> pl.Expr:
    return (pl.lit(now) - pl.col(column)).dt.total_microseconds() / _DAY
