"""The `forgetting` step: the ladder down (summarise, detach, archive) and back up, each step a recorded decision.

Nothing is destroyed. The revisions behind a summary stay beside the graph and in the ledger; detached fields and edges
are returned when asked for by id or name; archived topics leave default retrieval and the vector index, and are
restored by new evidence or an access.
"""

from __future__ import annotations

import polars as pl

from memstate_core.forget.archiving import to_archive
from memstate_core.forget.eviction_order import with_retention
from memstate_core.forget.ladder_decisions import topic_decisions
from memstate_core.forget.ladder_steps import Steps, history_lengths, steps_due
from memstate_core.forget.topic_features import dependence, governed, topic_features
from memstate_core.model.frames import conform
from memstate_core.model.graph_tables import REVISIONS
from memstate_core.model.step_frames import CHANGES, EVIDENCE_TOPIC
from memstate_core.run.begin import new_accesses
from memstate_core.run.run import Run
from memstate_core.run.step import StepResult
from memstate_core.run.store import Store
from memstate_core.run.view import decisions
from memstate_core.state.fold.decisions import ARCHIVED, RESTORED
from memstate_core.state.fold.ladder_state import LadderState, ladder_state
from memstate_core.state.fold.summaries import summarised
from memstate_core.state.graph import EDGE, FIELD, REVISION, TOPIC, Graph, open_graph

STEP = "forgetting"
"""The name of the step, under which a run keeps its decisions."""
_SHOWN = 20
"""Number of topics, scopes and models that are named to people."""


def forget(store: Store, run: Run, new: pl.DataFrame) -> StepResult:
    """Takes the steps that policy asks for, and reverses those that it no longer asks for, in the working graph.

    Args:
        store: the store.
        run: the run in progress, after the salience step.
        new: this run's new evidence (column evidence_id).

    Returns:
        Columns CHANGES: archived and restored topics.
    """
    before = decisions(store.ledger, run, but=STEP)
    ladder = ladder_state(before)
    with open_graph(run.graph, buffer_mib=store.settings.store.graph_buffer_mib) as graph:
        features, fits = with_retention(store, run, ladder_features(store, run, graph, ladder, new))
        ranked = to_archive(features, dependence(graph, run.facts.now), run.policy)
        lengths = history_lengths(graph)
        fields = graph.read(FIELD, ["topic_id", "name", "salience"]).join(lengths, on=["topic_id", "name"])
        steps = steps_due(features, ranked, fields, graph.read(EDGE, list(EDGE.key)), ladder, run.policy)
        taken = steps.decisions(run.policy.summary_keep_revisions)
        _write(graph, run, steps, ladder_state(pl.concat([before, taken])))
        moved = pl.concat([topic_decisions(steps.restored, RESTORED), topic_decisions(steps.archived, ARCHIVED)])
        changes = moved.select("topic_id", "scope", change="kind")
        named = _titled(graph, changes.head(_SHOWN))
    run.keep_table("orders", fits)
    tables = {
        "archived and restored": named,
        "active topics by scope": _pressure(ranked),
        "eviction order": fits.head(_SHOWN),
    }
    return StepResult(conform(changes, CHANGES), steps.counts(), tables, taken)


def _titled(graph: Graph, changes: pl.DataFrame) -> pl.DataFrame:
    """Changed topics with their titles."""
    titles = graph.read(TOPIC, ["id", "title"], "r.id IN $ids", ids=changes["topic_id"].to_list())
    found = changes.join(titles, left_on="topic_id", right_on="id", how="left", maintain_order="left")
    return found.select("title", "change", "scope", "topic_id")


def ladder_features(store: Store, run: Run, graph: Graph, ladder: LadderState, new: pl.DataFrame) -> pl.DataFrame:
    """The features of topics that the ladder of a run decides by, with the governing rules (`topic_features.governed`).

    Args:
        store: the store.
        run: the run in progress, after the salience step.
        graph: its working graph.
        ladder: the ladder state by the decisions before this step.
        new: this run's new evidence (column evidence_id).
    """
    new_evidence = run.table("links", EVIDENCE_TOPIC).join(new, on="evidence_id", how="semi")["topic_id"].unique()
    accessed = new_accesses(store, run).filter(~pl.col("failed"))["topic_id"].unique()
    return governed(topic_features(graph, run, new_evidence, accessed, ladder), run.policy)


def _write(graph: Graph, run: Run, steps: Steps, ladder: LadderState) -> None:
    size = run.policy.max_topics_for_forget_scan
    for rows, state in ((steps.restored, "active"), (steps.archived, "archived")):
        moved = rows.select(id="topic_id", state=pl.lit(state), archived=pl.lit(state == "archived"))
        for part in moved.iter_slices(size):
            graph.update(TOPIC, part)
    known = graph.read(FIELD, ["id", "topic_id", "name"])
    for rows, off in ((steps.detached_fields, True), (steps.attached_fields, False)):
        marked = known.join(rows, on=["topic_id", "name"], how="semi").select("id", detached=pl.lit(off))
        for part in marked.iter_slices(size):
            graph.update(FIELD, part)
    edges = pl.concat([steps.detached_edges.select(EDGE.key), steps.attached_edges.select(EDGE.key)])
    if edges.height:
        _write_edges(graph, edges, ladder)
    if steps.summarised.height or steps.expanded.height:
        _write_summaries(graph, run, ladder)


def _write_edges(graph: Graph, edges: pl.DataFrame, ladder: LadderState) -> None:
    """Sets the marks of detached edges."""
    key = list(EDGE.key)
    marks = edges.join(ladder.edges.with_columns(_now=True), on=key, how="left").fill_null(False)
    rows = graph.read(EDGE).join(marks, on=key, how="left", maintain_order="left")
    graph.sync(EDGE, rows.with_columns(detached=pl.coalesce("_now", "detached")).drop("_now"))


def _write_summaries(graph: Graph, run: Run, ladder: LadderState) -> None:
    """Makes histories follow the decisions; revisions are kept before they leave the graph, so a crash loses none."""
    apart = run.table("compressed", REVISIONS)
    full = pl.concat([graph.read(REVISION, where="r.summarises IS NULL"), apart]).unique("id", maintain_order=True)
    kept, compressed = summarised(full, ladder.summaries, run.policy)
    run.keep_table("compressed", pl.concat([compressed, apart]).unique("id", maintain_order=True))
    graph.sync(REVISION, kept)
    run.keep_table("compressed", compressed)


def _pressure(ranked: pl.DataFrame) -> pl.DataFrame:
    grouped = ranked.group_by("scope").agg(active=pl.len(), archived=pl.col("reason").count())
    return grouped.sort("active", "scope", descending=[True, False]).head(_SHOWN)
