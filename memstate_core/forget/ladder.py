"""The ladder's last step so far: archiving what has faded, when there is pressure, and bringing it back.

Archiving destroys nothing: the topic leaves default retrieval and the vector index, and new evidence
restores it. Both are recorded decisions.
"""

from __future__ import annotations

import polars as pl

from memstate_core.model.frames import CHANGES, DECISION, LINKS, conform
from memstate_core.policy.settings import Policy
from memstate_core.state.decisions import ARCHIVED, RESTORED
from memstate_core.state.graph import TOPIC, open_graph
from memstate_core.state.run import Run
from memstate_core.state.step import StepResult


def forget(run: Run, salience: pl.DataFrame, new: pl.DataFrame) -> StepResult:
    """Archives and restores topics in the working graph.

    Args:
        run: the run in progress.
        salience: columns topic_id, scope, state, salience.
        new: this run's new evidence (column evidence_id); an archived topic that it names comes back.

    Returns:
        Columns CHANGES: archived and restored topics.
    """
    links = run.table("links", LINKS)
    touched = links.join(new, on="evidence_id", how="semi")
    restored = salience.filter(pl.col("state") == "archived").join(touched, on="topic_id", how="semi")
    state = pl.when(pl.col("topic_id").is_in(restored["topic_id"].implode())).then(pl.lit("active")).otherwise("state")
    ranked = to_archive(salience.with_columns(state=state), run.policy)
    archived = ranked.filter(pl.col("reason").is_not_null())
    decisions = pl.concat(
        [
            _decided(restored.with_columns(reason=pl.lit("new evidence names it")), RESTORED),
            _decided(archived, ARCHIVED),
        ]
    )
    changes = decisions.select("topic_id", "scope", change="kind")
    with open_graph(run.graph) as graph:
        final = changes.group_by("topic_id", maintain_order=True).last()
        is_archived = pl.col("change") == ARCHIVED
        state = pl.when(is_archived).then(pl.lit("archived")).otherwise(pl.lit("active"))
        graph.update(TOPIC, final.select(id="topic_id", state=state, archived=is_archived))
    counts = {"archived": archived.height, "restored": restored.height, "summarised": 0, "detached": 0}
    return StepResult(conform(changes, CHANGES), counts, {"active topics by scope": _pressure(ranked)}, decisions)


def to_archive(salience: pl.DataFrame, policy: Policy) -> pl.DataFrame:
    """Active topics with the reason to archive them, or null.

    Below `topic_count_soft_limit` active topics a scope archives nothing; from it on, topics below
    `forget_salience_threshold` go; above `max_active_topics` the lowest go until the bound holds.

    Returns:
        Columns topic_id, scope, salience, active (topics in the scope), reason.
    """
    active = salience.filter(pl.col("state") == "active").sort("scope", "salience", "topic_id")
    counted = active.with_columns(
        active=pl.len().cast(pl.Int64).over("scope"), rank=pl.int_range(pl.len()).over("scope")
    )
    pressed = pl.col("active") >= policy.topic_count_soft_limit
    faded = pressed & (pl.col("salience") < policy.forget_salience_threshold)
    surplus = pl.col("rank") < pl.col("active") - policy.max_active_topics
    theta, bound = policy.forget_salience_threshold, policy.max_active_topics
    low = pl.format("salience {} is below {} and the scope has {} active topics", "salience", pl.lit(theta), "active")
    many = pl.format("the scope has {} active topics, over the bound of {}", "active", pl.lit(bound))
    reason = pl.when(faded).then(low).when(surplus).then(many)
    return counted.select("topic_id", "scope", "salience", "active", reason=reason)


def _decided(rows: pl.DataFrame, kind: str) -> pl.DataFrame:
    payload = pl.struct("salience").struct.json_encode()
    return conform(rows.with_columns(kind=pl.lit(kind), payload_json=payload), DECISION)


def _pressure(ranked: pl.DataFrame) -> pl.DataFrame:
    grouped = ranked.group_by("scope").agg(active=pl.len(), archived=pl.col("reason").count())
    return grouped.sort("active", "scope", descending=[True, False]).head(20)
