"""The salience step: sets the salience of every field and topic at the run's logical time, in two bulk updates."""

from __future__ import annotations

from datetime import datetime

import polars as pl

from memstate_core.policy.settings import Policy
from memstate_core.run.run import Run
from memstate_core.run.step import StepResult
from memstate_core.state.graph import FIELD, TOPIC, open_graph
from memstate_core.state.strength import salience

DECAY = ("strength", "reinforced_at", "half_life_days")
"""The columns that salience is computed from; topics have `failed_strength` too."""


def saliences(
    fields: pl.DataFrame, topics: pl.DataFrame, now: datetime, policy: Policy
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Fields and topics with their salience at a time; a topic's is the mean of its fields'.

    A topic without fields has the salience of its evidence as a whole.

    Args:
        fields: columns id, topic_id and DECAY.
        topics: columns id, failed_strength and DECAY.
        now: the time.
        policy: the maximum.

    Returns:
        The fields, sorted by id, with `salience`, and the topics with `salience` and `failed_salience`.
    """
    ranked = fields.sort("id").with_columns(salience=salience(now, policy))
    means = ranked.group_by("topic_id", maintain_order=True).agg(_mean=pl.col("salience").mean())
    failed = salience(now, policy, "failed_strength").fill_null(0.0)
    own = topics.with_columns(_own=salience(now, policy), failed_salience=failed).join(
        means, left_on="id", right_on="topic_id", how="left"
    )
    return ranked, own.with_columns(salience=pl.coalesce("_mean", "_own").fill_null(0.0).round(9)).drop("_mean", "_own")


def update_salience(run: Run) -> StepResult:
    """Sets salience in the working graph.

    Returns:
        Columns topic_id, scope, state and salience, for every topic that is not a tombstone.
    """
    with open_graph(run.graph) as graph:
        fields = graph.read(FIELD, ["id", "topic_id", *DECAY])
        topics = graph.read(TOPIC, ["id", "scope", "state", "failed_strength", *DECAY])
        fields, topics = saliences(fields, topics, run.facts.now, run.policy)
        graph.update(FIELD, fields.select("id", "salience"))
        graph.update(TOPIC, topics.select("id", "salience", "failed_salience"))
    living = topics.filter(pl.col("state") != "merged")
    frame = living.select("scope", "state", "salience", topic_id="id").sort("topic_id")
    counts = {"topics": frame.height, "fields": fields.height, "mean_salience": round(_mean(frame), 6)}
    return StepResult(frame, counts)


def _mean(frame: pl.DataFrame) -> float:
    return float(frame.select(pl.col("salience").mean().fill_null(0.0)).item())
