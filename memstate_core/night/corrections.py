"""Corrections: short runs that record manual decisions and publish at once.

Nothing else changes: the run keeps the evidence, the policy and the model of the served snapshot, looks for no
duplicates and forgets nothing. The ledger is folded again with the new decisions, so undoing a merge gives the
state without it (law L4).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import polars as pl

from memstate_core.forget.salience import update_salience
from memstate_core.model.errors import CheckRefused, StoreNotFound
from memstate_core.model.frames import empty
from memstate_core.model.step_frames import EVIDENCE_TOPIC
from memstate_core.night.checks.check import Check
from memstate_core.night.checks.suite import conditions
from memstate_core.night.placements import place
from memstate_core.night.publish import publish
from memstate_core.night.rebuild import ensure_served
from memstate_core.revise.dependency import queue_reviews
from memstate_core.run.apply import apply_state, changes
from memstate_core.run.begin import begin_run
from memstate_core.run.embed_topics import refresh_embeddings
from memstate_core.run.refold import fold_run
from memstate_core.run.run import Run
from memstate_core.run.store import Store, with_model
from memstate_core.state.current import current_snapshot
from memstate_core.state.fold.decisions import CORRECTIONS, REVIEW_ENDED
from memstate_core.state.graph import REVIEW, Graph, open_graph
from memstate_core.state.snapshots import Manifest, Snapshot, load_snapshot


@dataclass(frozen=True)
class Corrected:
    """A correction that was published.

    Attributes:
        before: the manifest of the snapshot that was served.
        manifest: that of the new one.
        decisions: what was decided (columns DECISION).
        checks: the conditions, all of which hold.
    """

    before: Manifest
    manifest: Manifest
    decisions: pl.DataFrame
    checks: list[Check]


def correct(store: Store, shard: str, run_id: str, now: datetime, decisions: pl.DataFrame, why: str) -> Corrected:
    """Records decisions and publishes the resulting state; the caller holds the store's lock.

    Args:
        store: the store.
        shard: which shard.
        run_id: the run's name in the ledger.
        now: its logical time, for salience and for the record.
        decisions: the decisions (columns DECISION).
        why: the reason of decisions without one.

    Raises:
        StoreNotFound: nothing of this shard was published yet.
        CheckRefused: a correctness condition would not hold; nothing was recorded or published.
    """
    served = served_snapshot(store, shard, run_id)
    as_served = with_model(store, served.manifest.embedding_model)
    run = begin_run(as_served, shard, run_id, now, pinned=served.manifest)
    try:
        decided = decisions.with_columns(pl.col("reason").fill_null(why))
        run.decide(CORRECTIONS, decided)
        follow(as_served, run)
        checks = refuse_violations(as_served, run)
        publish(as_served, run)
        manifest = load_snapshot(store.home, shard, run.facts.number).manifest
        return Corrected(served.manifest, manifest, decided, checks)
    finally:
        run.end()


def served_snapshot(store: Store, shard: str, run_id: str) -> Snapshot:
    """The served snapshot of a shard, rebuilt first if the ledger records one and its files are missing.

    Raises:
        StoreNotFound: nothing of this shard was published yet.
    """
    ensure_served(store, shard, run_id)
    served = current_snapshot(store.home, shard)
    if served is None:
        raise StoreNotFound(str(store.home.root))
    return served


def follow(store: Store, run: Run) -> None:
    """Makes the working graph equal to the fold of the ledger with the new decisions."""
    place(store, run, empty({"evidence_id": EVIDENCE_TOPIC["evidence_id"]}))
    folded = fold_run(store, run)
    with open_graph(run.graph, buffer_mib=store.settings.store.graph_buffer_mib) as graph:
        applied = apply_state(run, graph, folded, new_evidence=False)
        _end_reviews(graph, run)
    refresh_embeddings(store, run)
    run.keep("dependency_review", queue_reviews(run, changes(folded.state, applied)), 0.0)
    update_salience(run)


def _end_reviews(graph: Graph, run: Run) -> None:
    ended = run.decisions(CORRECTIONS).filter(pl.col("kind") == REVIEW_ENDED)
    waiting = graph.read(REVIEW, ["id", "topic_id"]).join(ended, on="topic_id", how="semi")
    graph.delete(REVIEW, waiting.select("id"))


def refuse_violations(store: Store, run: Run) -> list[Check]:
    """The correctness conditions of a run, all of which hold; refuses a run that violates one.

    Raises:
        CheckRefused: it does.
    """
    found = conditions(store, run)
    failed = {name: check for name, check in found.items() if not check.passed}
    if failed:
        raise CheckRefused(list(failed), {name: check.violations.head(20).rows() for name, check in failed.items()})
    return [*found.values()]
