"""The salience step: every field's and topic's salience at the run's logical time, in two bulk updates."""

from __future__ import annotations

import polars as pl

from memstate_core.forget.decay import salience
from memstate_core.state.graph import FIELD, TOPIC, open_graph
from memstate_core.state.run import Run
from memstate_core.state.step import StepResult


def update_salience(run: Run) -> StepResult:
    """Sets salience in the working graph; a topic's is the mean of its fields'.

    A topic without fields has the salience of its evidence as a whole.

    Returns:
        Columns topic_id, scope, state, salience of every topic that is not a tombstone.
    """
    now, policy = run.facts.now, run.policy
    with open_graph(run.graph) as graph:
        fields = graph.read(FIELD, ["id", "topic_id", "strength", "reinforced_at"])
        topics = graph.read(TOPIC, ["id", "scope", "state", "strength", "reinforced_at"])
        fields = fields.with_columns(salience=salience(now, policy))
        means = fields.sort("id").group_by("topic_id", maintain_order=True).agg(_mean=pl.col("salience").mean())
        own = topics.with_columns(_own=salience(now, policy)).join(means, left_on="id", right_on="topic_id", how="left")
        own = own.with_columns(
            salience=pl.coalesce("_mean", "_own").fill_null(0.0).round(9), failed_salience=pl.lit(0.0)
        )
        graph.update(FIELD, fields.select("id", "salience"))
        graph.update(TOPIC, own.select("id", "salience", "failed_salience"))
    alive = own.filter(pl.col("state") != "merged")
    frame = alive.select("scope", "state", "salience", topic_id="id").sort("topic_id")
    counts = {"topics": frame.height, "fields": fields.height, "mean_salience": round(_mean(frame), 6)}
    return StepResult(frame, counts)


def _mean(frame: pl.DataFrame) -> float:
    return float(frame.select(pl.col("salience").mean().fill_null(0.0)).item())
