"""The `dependency_review` step: a change in a topic concerns what extends it (condition C3).

Over extension edges only, never over association: a part depends on its whole, a detail on what it
details, an extension and a derivation on their source. The search goes breadth first, so that a circle
ends it, and stops at a number of hops and of topics that policy sets.
"""

from __future__ import annotations

import polars as pl

from memstate_core.model.frames import DECISION, REVIEWS, conform
from memstate_core.policy.settings import Policy
from memstate_core.state.decisions import REVIEW_ENDED, REVIEW_QUEUED
from memstate_core.state.edges import EXTENSION_KINDS
from memstate_core.state.graph import EDGE, REVIEW, TOPIC, open_graph
from memstate_core.state.run import Run
from memstate_core.state.step import StepResult

_POINTING_DOWN = ("has_detail", "has_subtopic")
"""Extension kinds whose target depends on their source; for the others it is the other way round."""
_PAYLOAD = pl.Struct({"cause_topic_id": pl.String, "hops": pl.Int64})


def dependents(edges: pl.DataFrame) -> pl.DataFrame:
    """Extension edges as dependence (columns base, dependent), each once."""
    extension = edges.filter(pl.col("kind").is_in(EXTENSION_KINDS))
    down = pl.col("kind").is_in(_POINTING_DOWN)
    base, dependent = (
        pl.when(down).then("from_id").otherwise("to_id"),
        pl.when(down).then("to_id").otherwise("from_id"),
    )
    return extension.select(base=base, dependent=dependent).unique().sort("base", "dependent")


def affected(changed: pl.Series, dependence: pl.DataFrame, policy: Policy) -> pl.DataFrame:
    """Topics that depend on changed ones and did not change themselves, nearest first.

    Args:
        changed: topic ids.
        dependence: columns base, dependent.
        policy: gives the caps.

    Returns:
        Columns topic_id, cause_topic_id (the changed topic it depends on most directly), hops.
    """
    reached = pl.DataFrame({"topic_id": changed.unique().sort()}).with_columns(
        cause_topic_id="topic_id", hops=pl.lit(0, pl.Int64)
    )
    frontier = reached
    for hop in range(1, policy.dependency_max_hops + 1):
        step = frontier.join(dependence, left_on="topic_id", right_on="base")
        step = step.select(topic_id="dependent", cause_topic_id="cause_topic_id", hops=pl.lit(hop, pl.Int64))
        frontier = step.sort("topic_id", "cause_topic_id").unique("topic_id", keep="first", maintain_order=True)
        frontier = frontier.join(reached, on="topic_id", how="anti")
        if not frontier.height:
            break
        reached = pl.concat([reached, frontier])
    return reached.filter(pl.col("hops") > 0).head(policy.dependency_max_topics)


def queue_reviews(run: Run, changed: pl.DataFrame) -> StepResult:
    """Queues dependents of changed topics in the working graph.

    A topic that itself changed in this run was evaluated anew, so its earlier place in the queue ends.

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
        found = affected(changed["topic_id"], dependents(graph.read(EDGE, ["from_id", "to_id", "kind"])), run.policy)
        fresh = _reasoned(found, titles, run)
        waiting = graph.read(REVIEW).join(fresh, on="id", how="anti")
        ended = waiting.filter(pl.col("topic_id").is_in(ids)).vstack(waiting.join(titles, on="topic_id", how="anti"))
        queue = pl.concat([fresh, waiting.join(ended, on="id", how="anti")]).sort("id")
        graph.sync(REVIEW, queue)
    decided = [
        _recorded(fresh, titles, REVIEW_QUEUED),
        _recorded(ended.unique("id").with_columns(reason=pl.lit("the topic itself changed")), titles, REVIEW_ENDED),
    ]
    capped = found.height == run.policy.dependency_max_topics
    counts = {"queued": fresh.height, "waiting": queue.height, "capped": int(capped)}
    tables = {"queued for review": fresh.select("topic_id", "reason").head(20)}
    return StepResult(queue, counts, tables, pl.concat(decided))


def recorded_queue(transitions: pl.DataFrame) -> pl.DataFrame:
    """The review queue as recorded decisions leave it (columns REVIEWS), for a rebuild.

    Args:
        transitions: columns TRANSITIONS, in order.
    """
    rows = transitions.filter(pl.col("kind").is_in([REVIEW_QUEUED, REVIEW_ENDED]))
    last = rows.group_by("topic_id", maintain_order=True).last().filter(pl.col("kind") == REVIEW_QUEUED)
    decoded = last.with_columns(_payload=pl.col("payload_json").str.json_decode(_PAYLOAD)).unnest("_payload")
    return conform(decoded.with_columns(id="topic_id", queued_at="at"), REVIEWS).sort("id")


def _reasoned(found: pl.DataFrame, titles: pl.DataFrame, run: Run) -> pl.DataFrame:
    causes = titles.select(cause_topic_id="topic_id", _cause="title")
    reason = pl.format("{} changed, {} extension hops away", pl.coalesce("_cause", "cause_topic_id"), "hops")
    named = found.join(titles, on="topic_id", how="semi").join(causes, on="cause_topic_id", how="left")
    return conform(named.with_columns(id="topic_id", reason=reason, queued_at=pl.lit(run.facts.now)), REVIEWS)


def _recorded(rows: pl.DataFrame, titles: pl.DataFrame, kind: str) -> pl.DataFrame:
    payload = pl.struct("cause_topic_id", "hops").struct.json_encode()
    scoped = rows.join(titles.select("topic_id", "scope"), on="topic_id", how="left")
    return conform(scoped.with_columns(kind=pl.lit(kind), payload_json=payload), DECISION)
