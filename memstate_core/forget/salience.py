"""The salience step: sets the salience of every field and topic at the run's logical time, in two bulk updates."""

from __future__ import annotations

import polars as pl

from memstate_core.run.run import Run
from memstate_core.run.step import StepResult
from memstate_core.state.fold.strength import DECAY, saliences
from memstate_core.state.graph import FIELD, TOPIC, open_graph


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
