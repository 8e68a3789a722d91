"""Topic features: one row a topic with all that rules and the ladder decide by.

The columns are those that the conditions of rules name (`memstate_core.policy.rules.RULE_COLUMNS`) and those of the
ladder itself. They are computed in sets, never topic by topic.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import polars as pl

from memstate_core.forget.bound import is_pinned
from memstate_core.model.step_frames import EVIDENCE_TOPIC
from memstate_core.model.text import iso_expr
from memstate_core.policy.overrides import value_for
from memstate_core.policy.rules import governing
from memstate_core.policy.settings import Policy
from memstate_core.run.run import Run
from memstate_core.state.fold.dependents import dependents
from memstate_core.state.fold.edges import edges_at
from memstate_core.state.fold.ladder_state import LadderState
from memstate_core.state.graph import FIELD, TOPIC, Graph

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
"""The columns of a topic's thresholds, and the policy keys that they come from."""


@dataclass(frozen=True)
class FeatureInputs:
    """What the features of topics are computed from, as of one time.

    Attributes:
        topics: columns TOPIC_COLUMNS without tombstones; salience as of that time.
        evidence: the number of each topic's pieces of evidence (columns topic_id, evidence).
        fields: the number of its fields (columns topic_id, fields).
        edges: those in force then (columns from_id, to_id, kind).
        held: topics that a person restored (columns topic_id, last_event_at, as in `LadderState`).
    """

    topics: pl.DataFrame
    evidence: pl.DataFrame
    fields: pl.DataFrame
    edges: pl.DataFrame
    held: pl.DataFrame


def topic_features(
    graph: Graph, run: Run, new_evidence: pl.Series, accessed: pl.Series, ladder: LadderState
) -> pl.DataFrame:
    """The features of every topic of the working graph that is not a tombstone; see `features_of`.

    The state is taken from the decisions, not from the graph, so that the step can be repeated after a crash.

    Args:
        graph: the working graph, with salience at the run's logical time.
        run: gives the time, the policy and the topics of evidence.
        new_evidence: topics with new evidence in this run.
        accessed: topics that were accessed since the last run.
        ladder: the ladder state by earlier decisions.
    """
    archived = pl.col("id").is_in(ladder.archived["topic_id"].implode())
    state = pl.when(archived).then(pl.lit("archived")).otherwise(pl.lit("active"))
    topics = graph.read(TOPIC, TOPIC_COLUMNS, "r.state <> 'merged'").with_columns(state=state)
    fields, edges = graph.read(FIELD, ["topic_id"]), edges_at(graph, run.facts.now)
    evidence = counted(run.table("links", EVIDENCE_TOPIC), "evidence")
    known = FeatureInputs(topics, evidence, counted(fields, "fields"), edges, ladder.held)
    return features_of(known, run.facts.now, run.policy, new_evidence, accessed)


def features_of(
    known: FeatureInputs, now: datetime, policy: Policy, new_evidence: pl.Series, accessed: pl.Series
) -> pl.DataFrame:
    """The features of every topic, sorted by id.

    Args:
        known: the topics and what belongs to them.
        now: the time.
        policy: limits and thresholds.
        new_evidence: topics with new evidence.
        accessed: topics that were accessed.

    Returns:
        Columns topic_id, scope, scope_type, topic_kind, title, state (archived topics with new evidence or an access
        count as active), was (the state before that), salience, failed_salience, half_life_days, age_days, idle_days,
        evidence, fields, active (active topics in the scope), pressure, pinned, held, has_new_evidence, accessed,
        depended_on, redundant, and the thresholds (THRESHOLDS).
    """
    ids = pl.col("topic_id")
    marked = known.topics.rename({"id": "topic_id"}).sort("topic_id")
    marked = marked.with_columns(
        has_new_evidence=ids.is_in(new_evidence.implode()),
        accessed=ids.is_in(accessed.implode()),
        pinned=is_pinned(policy),
        held=ids.is_in(_held(marked, known.held).implode()),
        was="state",
    )
    back = (pl.col("state") == "archived") & (pl.col("has_new_evidence") | pl.col("accessed"))
    marked = marked.with_columns(state=pl.when(back).then(pl.lit("active")).otherwise("state"))
    for counts in (known.evidence, known.fields):
        marked = marked.join(counts, on="topic_id", how="left", maintain_order="left")
    active = (pl.col("state") == "active").sum().cast(pl.Int64).over("scope")
    return (
        _with_edge_features(marked, known.edges)
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
    """Adds `rule` and `action` (of the rule that governs a topic, or null) to the columns of `features_of`.

    A topic that a rule pins is `pinned` too.
    """
    ruled = governing(topics, policy.ladder_rules)
    return ruled.with_columns(pinned=pl.col("pinned") | (pl.col("action") == "pin").fill_null(False))


def counted(rows: pl.DataFrame, name: str) -> pl.DataFrame:
    """The number of rows of each topic (columns topic_id and the given name)."""
    return rows.group_by("topic_id").agg(pl.len().cast(pl.Int64).alias(name))


def dependence(graph: Graph, moment: datetime) -> pl.DataFrame:
    """Dependencies over the extension edges in force at a moment (columns base, dependent)."""
    return dependents(edges_at(graph, moment))


def _held(topics: pl.DataFrame, held: pl.DataFrame) -> pl.Series:
    """Topics that a person restored and that have had no event since."""
    known = topics.select("topic_id", "reinforced_at").join(held, on="topic_id")
    return known.filter(iso_expr(pl.col("reinforced_at")) == pl.col("last_event_at"))["topic_id"]


def _with_edge_features(topics: pl.DataFrame, edges: pl.DataFrame) -> pl.DataFrame:
    """Adds whether an active topic depends on a topic (`depended_on`) or supersedes it (`redundant`)."""
    active = topics.filter(pl.col("state") == "active")["topic_id"].implode()
    bases = dependents(edges).filter(pl.col("dependent").is_in(active))["base"].unique()
    newer = (pl.col("kind") == "supersedes") & pl.col("from_id").is_in(active)
    covered = edges.filter(newer)["to_id"].unique()
    ids = pl.col("topic_id")
    return topics.with_columns(depended_on=ids.is_in(bases.implode()), redundant=ids.is_in(covered.implode()))


def _days(column: str, now: datetime) -> pl.Expr:
    return (pl.lit(now) - pl.col(column)).dt.total_microseconds() / _DAY
