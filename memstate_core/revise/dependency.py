"""The `dependency_review` step: queues the topics that extend a changed topic for review (condition C3).

Dependencies follow extension edges in force only, never associations: a part depends on its whole, a detail on what it
details, an extension and a derivation on their source. The search is breadth first, ends at cycles, and stops
at the numbers of hops and topics (of each scope) that policy sets.
"""

from __future__ import annotations

import polars as pl

from memstate_core.model.frames import project
from memstate_core.model.graph_tables import REVIEWS
from memstate_core.model.ledger_tables import DECISION
from memstate_core.run.run import Run
from memstate_core.run.step import StepResult
from memstate_core.state.fold.decisions import REVIEW_ENDED, REVIEW_QUEUED
from memstate_core.state.fold.dependents import affected, dependents
from memstate_core.state.fold.edges import edges_at
from memstate_core.state.graph import REVIEW, TOPIC, open_graph

_PAYLOAD = pl.Struct({"cause_topic_id": pl.String, "hops": pl.Int64})


def queue_reviews(run: Run, changed: pl.DataFrame) -> StepResult:
    """Queues dependents of changed topics in the working graph.

    A topic that itself changed in this run leaves the queue.

    Args:
        run: the run in progress.
        changed: columns CHANGES.

    Returns:
        Columns REVIEWS: the whole queue.
    """
    ids = changed["topic_id"].unique().implode()
    run.keep_table("changes", changed)
    with open_graph(run.graph) as graph:
        titles = graph.read(TOPIC, ["id", "scope", "title"], "r.state <> 'merged'").rename({"id": "topic_id"})
        dependence = dependents(edges_at(graph, run.facts.now))
        found = affected(changed["topic_id"], dependence, titles, run.policy)
        fresh = _reasoned(found, titles, run)
        waiting = graph.read(REVIEW).join(fresh, on="id", how="anti")
        ended = waiting.filter(pl.col("topic_id").is_in(ids)).vstack(waiting.join(titles, on="topic_id", how="anti"))
        queue = pl.concat([fresh, waiting.join(ended, on="id", how="anti")]).sort("id")
        graph.sync(REVIEW, queue)
    decided = [
        _recorded(fresh, titles, REVIEW_QUEUED),
        _recorded(ended.unique("id").with_columns(reason=pl.lit("the topic itself changed")), titles, REVIEW_ENDED),
    ]
    a_scope = found.join(titles, on="topic_id").group_by("scope").len()
    capped = (a_scope["len"] >= run.policy.dependency_max_topics).any()
    counts = {"queued": fresh.height, "waiting": queue.height, "capped": int(capped)}
    named = fresh.head(20).join(titles, on="topic_id", how="left", maintain_order="left")
    tables = {"queued for review": named.select("title", "reason", "topic_id")}
    return StepResult(queue, counts, tables, pl.concat(decided))


def recorded_queue(transitions: pl.DataFrame) -> pl.DataFrame:
    """The review queue as recorded decisions leave it (columns REVIEWS), for a rebuild.

    Args:
        transitions: columns TRANSITIONS, in order.
    """
    rows = transitions.filter(pl.col("kind").is_in([REVIEW_QUEUED, REVIEW_ENDED]))
    last = rows.group_by("topic_id", maintain_order=True).last().filter(pl.col("kind") == REVIEW_QUEUED)
    decoded = last.with_columns(_payload=pl.col("payload_json").str.json_decode(_PAYLOAD)).unnest("_payload")
    return project(decoded.with_columns(id="topic_id", queued_at="at"), REVIEWS).sort("id")


def _reasoned(found: pl.DataFrame, titles: pl.DataFrame, run: Run) -> pl.DataFrame:
    causes = titles.select(cause_topic_id="topic_id", _cause="title")
    away = pl.format("{} {} away", "hops", pl.when(hops=1).then(pl.lit("extension")).otherwise(pl.lit("extensions")))
    reason = pl.format("{} changed, {}", pl.coalesce("_cause", "cause_topic_id"), away)
    named = found.join(titles, on="topic_id", how="semi").join(causes, on="cause_topic_id", how="left")
    return project(named.with_columns(id="topic_id", reason=reason, queued_at=pl.lit(run.facts.now)), REVIEWS)


def _recorded(rows: pl.DataFrame, titles: pl.DataFrame, kind: str) -> pl.DataFrame:
    payload = pl.struct("cause_topic_id", "hops").struct.json_encode()
    scoped = rows.join(titles.select("topic_id", "scope"), on="topic_id", how="left")
    return project(scoped.with_columns(kind=pl.lit(kind), payload_json=payload), DECISION, nulls=("evidence_ids",))
