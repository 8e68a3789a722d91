"""Publishes every shard again from the ledger without the subject, and removes the snapshots that held it."""

from __future__ import annotations

import shutil
from dataclasses import replace

import polars as pl

from memstate_core.forget.salience import update_salience
from memstate_core.model.progress import tracked
from memstate_core.night.placements import place
from memstate_core.night.publish import publish
from memstate_core.night.rebuild import facts_anew
from memstate_core.policy.sections.extractor import ExtractorSettings
from memstate_core.revise.dependency import recorded_queue
from memstate_core.run.apply import update_topics
from memstate_core.run.begin import recover
from memstate_core.run.embed_topics import refresh_embeddings
from memstate_core.run.publications import publications
from memstate_core.run.run import Run
from memstate_core.run.store import Store, with_model
from memstate_core.run.view import decisions, shard_evidence
from memstate_core.state.fold.decisions import segments
from memstate_core.state.fold.rollbacks import in_effect
from memstate_core.state.fold.shard_history import of_shard
from memstate_core.state.graph import REVIEW, open_graph
from memstate_core.state.layout import remove_retired
from memstate_core.state.snapshots import Manifest, numbers


def republish(store: Store, run_id: str) -> dict[str, str]:
    """Folds and publishes each shard that the ledger records as published; returns the state hashes by shard.

    No language model is asked: turns that shared a segment with erased ones are placed without it.
    """
    hashes = {}
    remove_retired(store.home, store.layout)
    for shard in tracked(store.shards, "publish again", len(store.shards), "shards"):
        recover(store, shard)
        recorded = publications(store, shard)
        if recorded:
            hashes[shard] = _publish(store, recorded[-1][1], run_id)
            _keep_last(store, shard)
    return hashes


def _publish(store: Store, published: Manifest, run_id: str) -> str:
    without_model = replace(store, settings=store.settings.model_copy(update={"extractor": ExtractorSettings()}))
    as_then = with_model(without_model, published.embedding_model)
    run = _begun(as_then, published, run_id)
    with open_graph(run.graph):
        pass
    run.keep("placements", place(as_then, run, _unplaced(as_then, run)), 0.0)
    update_topics(as_then, run)
    refresh_embeddings(as_then, run)
    update_salience(run)
    with open_graph(run.graph) as graph:
        graph.sync(REVIEW, _queue(store, run))
    result = publish(as_then, run).frame
    run.end()
    return str(result["state_hash"].item())


def _begun(store: Store, published: Manifest, run_id: str) -> Run:
    model, policy = published.embedding_model, published.policy
    facts = facts_anew(store, published, run_id, embedding_model=model, policy=policy)
    return Run.begin(store.home.work(published.shard), facts)


def _unplaced(store: Store, run: Run) -> pl.DataFrame:
    """Turns whose recorded segment was erased, since it held erased turns, too (column evidence_id)."""
    recorded = segments(decisions(store.ledger, run)).select(pl.col("evidence_ids").explode().alias("evidence_id"))
    unnamed = shard_evidence(store.ledger, run, ["evidence_id", "text", "topic_id", "topic_key", "title"])
    named = pl.any_horizontal(pl.col("topic_id", "topic_key", "title").is_not_null())
    return unnamed.filter(~named).join(recorded, on="evidence_id", how="anti").select("evidence_id")


def _queue(store: Store, run: Run) -> pl.DataFrame:
    rows = of_shard(store.ledger.scan("transitions", run.facts.transitions_version), run.facts.shard)
    return recorded_queue(in_effect(rows.sort("seq").collect()))


def _keep_last(store: Store, shard: str) -> None:
    for number in numbers(store.home, shard)[:-1]:
        shutil.rmtree(store.home.snapshots(shard) / str(number))
