"""The `forgetting` step: the ladder down (summarise, detach, archive) and back, each step a recorded decision.

Nothing is destroyed: a summary stands for revisions that lie beside the graph and in the ledger, detached
fields and links answer when they are asked for by id or name, archived topics leave default retrieval and the
vector index and come back when new evidence names them or somebody uses them.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from memstate_core.forget.archiving import to_archive
from memstate_core.forget.attenuation import detached_fields, detached_links, summaries
from memstate_core.forget.eviction_order import ordered
from memstate_core.forget.ladder_decisions import decided, decided_fields, decided_links
from memstate_core.forget.topic_features import dependence, governed, standing
from memstate_core.model.frames import CHANGES, LINKS, REVISIONS, conform
from memstate_core.run.begin import new_accesses
from memstate_core.run.run import Run
from memstate_core.run.step import StepResult
from memstate_core.run.store import Store
from memstate_core.run.view import decisions
from memstate_core.state.decisions import ARCHIVED, ATTACHED, DETACHED, EXPANDED, RESTORED, SUMMARISED
from memstate_core.state.graph import EDGE, FIELD, REVISION, TOPIC, Graph, open_graph
from memstate_core.state.ladder_state import Rungs, rungs
from memstate_core.state.summaries import summarised

STEP = "forgetting"
"""The step's name, under which a run keeps its decisions."""


@dataclass(frozen=True)
class Steps:
    """What the ladder decided in a run: rows that take a step, or come back, with salience and reason."""

    archived: pl.DataFrame
    restored: pl.DataFrame
    detached: pl.DataFrame
    attached: pl.DataFrame
    cut: pl.DataFrame
    tied: pl.DataFrame
    summarised: pl.DataFrame
    expanded: pl.DataFrame

    def decisions(self, keep: int) -> pl.DataFrame:
        """All of it as decisions (columns DECISION)."""
        return pl.concat(
            [
                decided(self.restored, RESTORED),
                decided(self.archived, ARCHIVED),
                decided_fields(self.detached, DETACHED),
                decided_fields(self.attached, ATTACHED),
                decided_links(self.cut, DETACHED),
                decided_links(self.tied, ATTACHED),
                decided_fields(self.summarised, SUMMARISED, keep),
                decided_fields(self.expanded, EXPANDED),
            ]
        )

    def counts(self) -> dict[str, int]:
        """How many topics, fields and links took each step."""
        return {
            "archived": self.archived.height,
            "restored": self.restored.height,
            "summarised": self.summarised.height,
            "expanded": self.expanded.height,
            "detached": self.detached.height + self.cut.height,
            "attached": self.attached.height + self.tied.height,
        }


def forget(store: Store, run: Run, new: pl.DataFrame) -> StepResult:
    """Takes the steps that policy asks for in the working graph, and back those that it asks for no more.

    Args:
        store: the store.
        run: the run in progress; salience is set.
        new: this run's new evidence (column evidence_id).

    Returns:
        Columns CHANGES: archived and restored topics.
    """
    before = decisions(store.ledger, run, but=STEP)
    stand = rungs(before)
    with open_graph(run.graph, buffer_mib=store.settings.store.graph_buffer_mib) as graph:
        ruled, orders = ordered(store, run, ladder_topics(store, run, graph, stand, new))
        ranked = to_archive(ruled, dependence(graph), run.policy)
        steps = _steps(graph, run, ruled, ranked, stand)
        taken = steps.decisions(run.policy.summary_keep_revisions)
        _write(graph, run, steps, rungs(pl.concat([before, taken])))
    run.keep_table("orders", orders)
    moved = pl.concat([decided(steps.restored, RESTORED), decided(steps.archived, ARCHIVED)])
    changes = moved.select("topic_id", "scope", change="kind")
    tables = {"active topics by scope": _pressure(ranked), "order under the bound": orders.head(20)}
    return StepResult(conform(changes, CHANGES), steps.counts(), tables, taken)


def ladder_topics(store: Store, run: Run, graph: Graph, stand: Rungs, new: pl.DataFrame) -> pl.DataFrame:
    """The topics as the ladder of a run finds them, with what governs each (`topic_features.governed`).

    Args:
        store: the store.
        run: the run in progress; salience is set.
        graph: its working graph.
        stand: where decisions before this step left topics.
        new: this run's new evidence (column evidence_id).
    """
    told = run.table("links", LINKS).join(new, on="evidence_id", how="semi")["topic_id"].unique()
    used = new_accesses(store, run).filter(~pl.col("failed"))["topic_id"].unique()
    return governed(standing(graph, run, told, used, stand), run.policy)


def _steps(graph: Graph, run: Run, topics: pl.DataFrame, ranked: pl.DataFrame, stand: Rungs) -> Steps:
    going = ranked.filter(pl.col("reason").is_not_null())
    was = topics.select("topic_id", "was")
    archived = going.join(was, on="topic_id").filter(pl.col("was") == "active")
    back = topics.filter((pl.col("was") == "archived") & (pl.col("state") == "active"))
    restored = back.join(going, on="topic_id", how="anti").with_columns(
        by=pl.when("told").then(pl.lit("evidence")).otherwise(pl.lit("access")),
        reason=pl.when("told").then(pl.lit("new evidence names it")).otherwise(pl.lit("it was used")),
    )
    fields = graph.read(FIELD, ["topic_id", "name", "salience"]).join(_lengths(graph), on=["topic_id", "name"])
    detached, attached = detached_fields(fields, topics, stand)
    cut, tied = detached_links(graph.read(EDGE, list(EDGE.key)), topics, stand)
    short, long = summaries(fields, topics, stand, run.policy)
    return Steps(archived, restored, detached, attached, cut, tied, short, long)


def _lengths(graph: Graph) -> pl.DataFrame:
    """How many revisions each field has in full (columns topic_id, name, revisions)."""
    rows = graph.read(REVISION, ["topic_id", "name", "summarises"], "r.part = 'field'")
    return rows.group_by("topic_id", "name").agg(revisions=pl.col("summarises").fill_null(1).sum())


def _write(graph: Graph, run: Run, steps: Steps, stand: Rungs) -> None:
    size = run.policy.max_topics_for_forget_scan
    for rows, state in ((steps.restored, "active"), (steps.archived, "archived")):
        moved = rows.select(id="topic_id", state=pl.lit(state), archived=pl.lit(state == "archived"))
        for part in moved.iter_slices(size):
            graph.update(TOPIC, part)
    known = graph.read(FIELD, ["id", "topic_id", "name"])
    for rows, off in ((steps.detached, True), (steps.attached, False)):
        marked = known.join(rows, on=["topic_id", "name"], how="semi").select("id", detached=pl.lit(off))
        for part in marked.iter_slices(size):
            graph.update(FIELD, part)
    links = pl.concat([steps.cut.select(EDGE.key), steps.tied.select(EDGE.key)])
    if links.height:
        _write_links(graph, links, stand)
    if steps.summarised.height or steps.expanded.height:
        _write_summaries(graph, run, stand)


def _write_links(graph: Graph, links: pl.DataFrame, stand: Rungs) -> None:
    """Marks links anew."""
    key = list(EDGE.key)
    marks = links.join(stand.edges.with_columns(_now=True), on=key, how="left").fill_null(False)
    rows = graph.read(EDGE).join(marks, on=key, how="left", maintain_order="left")
    graph.sync(EDGE, rows.with_columns(detached=pl.coalesce("_now", "detached")).drop("_now"))


def _write_summaries(graph: Graph, run: Run, stand: Rungs) -> None:
    """Brings histories to what decisions say; what leaves the graph is kept first, so that a crash loses nothing."""
    apart = run.table("compressed", REVISIONS)
    full = pl.concat([graph.read(REVISION, where="r.summarises IS NULL"), apart]).unique("id", maintain_order=True)
    kept, compressed = summarised(full, stand.summaries, run.policy)
    run.keep_table("compressed", pl.concat([compressed, apart]).unique("id", maintain_order=True))
    graph.sync(REVISION, kept)
    run.keep_table("compressed", compressed)


def _pressure(ranked: pl.DataFrame) -> pl.DataFrame:
    grouped = ranked.group_by("scope").agg(active=pl.len(), archived=pl.col("reason").count())
    return grouped.sort("active", "scope", descending=[True, False]).head(20)
