"""Writes a folded state into the working graph, and the step that does so after new evidence."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from memstate_core.model.frames import conform, empty, project
from memstate_core.model.ledger_tables import DECISION
from memstate_core.model.step_frames import CHANGES, PROBLEMS
from memstate_core.run.begin import base_links
from memstate_core.run.refold import fold_of_base, fold_run
from memstate_core.run.run import Run
from memstate_core.run.step import StepResult
from memstate_core.run.store import Store
from memstate_core.state.fold.decisions import MOVED
from memstate_core.state.fold.fold import State
from memstate_core.state.fold.refold import Refolded
from memstate_core.state.fold.strength import DECAY
from memstate_core.state.graph import EDGE, FIELD, REVISION, TOPIC, Graph, open_graph
from memstate_core.state.snapshots import load_snapshot

_SHOWN = 20
"""Number of topics that are named to people."""
LATER_STEPS_SET = ("salience", "failed_salience", "embedding_model")
USAGE = (*DECAY, "failed_strength")
"""What an access changes: it is no change of the topic, so it neither queues dependents nor ends a review."""


@dataclass(frozen=True)
class Applied:
    """What applying a state changed: ids of new and of changed topics, rows of new revisions."""

    created: pl.Series
    changed: pl.Series
    new_revisions: int


def apply_state(run: Run, graph: Graph, folded: Refolded, *, new_evidence: bool) -> Applied:
    """Makes the working graph equal to a fold, and keeps what the graph does not hold beside it.

    Without new evidence a topic's edges change only because their targets were merged or unmerged. Such a topic
    counts as affected, not as changed (condition C3).
    """
    state, owners = folded.state, folded.owners
    before = graph.read(TOPIC, ["id"])["id"]
    known = graph.read(REVISION, ["id"])
    own = [
        graph.sync(TOPIC, state.topics, keep=LATER_STEPS_SET, quiet=USAGE, owners=owners).topics,
        graph.sync(REVISION, state.revisions, owners=owners).topics,
        graph.sync(FIELD, state.fields, keep=("salience",), quiet=DECAY, owners=owners).topics,
    ]
    changed_edges = graph.sync(EDGE, state.edges, owners=owners).topics
    touched = pl.concat([*own, changed_edges] if new_evidence else own).unique()
    for name, frame in state.beside().items():
        run.keep_table(name, frame)
    ids = state.topics["id"]
    created = ids.filter(~ids.is_in(before.implode())).sort()
    changed = touched.filter(~touched.is_in(created.implode())).sort()
    return Applied(created, changed, state.revisions.join(known, on="id", how="anti").height)


def changes(state: State, applied: Applied) -> pl.DataFrame:
    """Created and updated topics (columns CHANGES); a topic that no longer exists is in neither."""
    is_new, is_changed = (pl.col("id").is_in(ids.implode()) for ids in (applied.created, applied.changed))
    change = pl.when(is_new).then(pl.lit("created")).when(is_changed).then(pl.lit("updated"))
    rows = state.topics.select("scope", topic_id="id", change=change).filter(pl.col("change").is_not_null())
    return conform(rows.sort("topic_id"), CHANGES)


def update_topics(store: Store, run: Run) -> StepResult:
    """The `topics` step: folds the ledger and writes what changed into the working graph.

    Returns:
        Columns CHANGES.
    """
    if run.reuses_base:
        return _unchanged(store, run)
    folded = fold_run(store, run, fold_of_base(store, run))
    state = folded.state
    with open_graph(run.graph, buffer_mib=store.settings.store.graph_buffer_mib) as graph:
        applied = apply_state(run, graph, folded, new_evidence=True)
        edges = graph.count(EDGE)
    frame = changes(state, applied)
    counts = {
        "topics_created": len(applied.created),
        "topics_updated": len(applied.changed),
        "revisions": applied.new_revisions,
        "topics": folded.topics,
        "edges": edges,
        "left_open": state.problems.height,
    }
    moved = _moved(base_links(store, run), state.evidence_topic)
    counts["evidence_moved"] = int(moved["evidence_ids"].list.len().sum())
    decided = [_recorded(frame.filter(pl.col("change") == name), f"topic_{name}") for name in ("created", "updated")]
    decided.append(moved)
    titled = state.topics.select("title", topic_id="id")
    named = frame.head(_SHOWN).join(titled, on="topic_id", how="left", maintain_order="left")
    tables = {
        "changed topics": named.select("title", "change", "scope", "topic_id"),
        "left open": state.problems.head(_SHOWN),
    }
    return StepResult(frame, counts, tables, pl.concat(decided))


def _unchanged(store: Store, run: Run) -> StepResult:
    """The outcome of a run that takes the state of its base over."""
    assert run.facts.base is not None
    held = load_snapshot(store.home, run.facts.shard, run.facts.base).manifest.counts
    problems = run.table("problems", PROBLEMS)
    counts = {
        **dict.fromkeys(("topics_created", "topics_updated", "revisions"), 0),
        "topics": sum(held[state] for state in ("active", "archived", "merged")),
        "edges": held["edges"],
        "left_open": problems.height,
        "evidence_moved": 0,
    }
    return StepResult(empty(CHANGES), counts, {"left open": problems.head(_SHOWN)})


def _moved(before: pl.DataFrame, now: pl.DataFrame) -> pl.DataFrame:
    """Decisions for evidence that a later dump moves to another topic, because the owner of its title arrived later."""
    both = now.join(before.select("evidence_id", was="topic_id"), on="evidence_id")
    pairs = both.filter(pl.col("was") != pl.col("topic_id")).group_by("scope", "was", "topic_id")
    grouped = pairs.agg(evidence_ids=pl.col("evidence_id").sort()).sort("was", "topic_id")
    payload = pl.struct("was").struct.json_encode()
    reason = pl.lit("a later dump brought the topic that the title belongs to")
    return project(grouped.with_columns(kind=pl.lit(MOVED), payload_json=payload, reason=reason), DECISION)


def _recorded(rows: pl.DataFrame, kind: str) -> pl.DataFrame:
    return project(
        rows.with_columns(kind=pl.lit(kind), reason=pl.lit("new evidence")),
        DECISION,
        nulls=("payload_json", "evidence_ids"),
    )
