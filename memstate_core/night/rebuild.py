"""Rebuild: folds the ledger from scratch, as of the publication of the served snapshot (law L3).

Only the ledger is read: evidence up to the recorded version, every recorded decision, the recorded policy
and logical time. Nothing is decided again, and no model is called as long as the embedding cache exists.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
from msgspec import convert

from memstate_core.forget.salience import update_salience
from memstate_core.model.errors import RebuildMismatch, StoreNotFound
from memstate_core.model.frames import empty
from memstate_core.model.ledger_tables import TRANSITIONS
from memstate_core.night.placements import place
from memstate_core.night.publish import publish
from memstate_core.revise.dependency import recorded_queue
from memstate_core.run.apply import update_topics
from memstate_core.run.base_check import require_ledger
from memstate_core.run.begin import last_published_payload, next_number, recover
from memstate_core.run.embed_topics import refresh_embeddings
from memstate_core.run.run import Run, RunFacts
from memstate_core.run.store import Store, with_model
from memstate_core.state.fold.decisions import CORRECTIONS
from memstate_core.state.fold.rollbacks import in_effect
from memstate_core.state.fold.shard_history import of_shard
from memstate_core.state.graph import REVIEW, open_graph
from memstate_core.state.snapshots import Manifest, numbers
from memstate_core.state.state_hash import state_hash


@dataclass(frozen=True)
class Folded:
    """A shard that was folded again in a scratch folder.

    Attributes:
        run: the run whose working graph holds the result.
        store: the store with the model that the ledger recorded.
        recorded: the manifest that the ledger recorded.
        state_hash: the hash of the new fold.
    """

    run: Run
    store: Store
    recorded: Manifest
    state_hash: str


def rebuild(store: Store, shard: str, run_id: str) -> Manifest:
    """Folds a shard's ledger again and publishes the result; the caller holds the store's lock.

    Returns:
        The manifest that the ledger recorded, whose state hash the rebuilt snapshot has too.

    Raises:
        StoreNotFound: the ledger records no published snapshot of this shard.
        LedgerDamaged: the ledger lacks something, or holds other bytes than were written; nothing was published.
        RebuildMismatch: the fold gave a different state; nothing was published.
    """
    recover(store, shard)
    require_ledger(store, _last_manifest(store, shard))
    folded = fold_recorded(store, shard, store.home.work(shard), run_id)
    if folded.state_hash != folded.recorded.state_hash:
        raise RebuildMismatch(shard, folded.recorded.state_hash, folded.state_hash)
    publish(folded.store, folded.run)
    folded.run.end()
    return folded.recorded


def fold_recorded(store: Store, shard: str, scratch: Path, run_id: str) -> Folded:
    """Folds a shard as of its last publication, in a scratch folder.

    Raises:
        StoreNotFound: the ledger records no published snapshot of this shard.
    """
    recorded = _last_manifest(store, shard)
    as_recorded = with_model(store, recorded.embedding_model)
    run = fold_again(as_recorded, recorded, recorded.policy, scratch, run_id)
    with open_graph(run.graph, read_only=True) as graph:
        return Folded(run, as_recorded, recorded, state_hash(graph))


def _last_manifest(store: Store, shard: str) -> Manifest:
    payload = last_published_payload(store, shard)
    if payload is None:
        raise StoreNotFound(str(store.home.root), f"no record of a published snapshot of shard {shard}")
    return convert(payload, Manifest)


def ensure_served(store: Store, shard: str, run_id: str) -> None:
    """Rebuilds a shard if the last snapshot that its ledger records as published is not kept any more."""
    recorded = recover(store, shard)
    if recorded is not None and recorded not in numbers(store.home, shard):
        rebuild(store, shard, run_id)


def facts_anew(
    store: Store, published: Manifest, run_id: str, *, embedding_model: str, policy: dict[str, Any]
) -> RunFacts:
    """The facts of a run that folds a shard into a new graph, as of a snapshot that was published.

    Args:
        store: the store.
        published: the snapshot whose evidence, accesses and logical time are used.
        run_id: the run's name.
        embedding_model: the model of the topics' vectors.
        policy: the policy of the fold, as a manifest records it.
    """
    return RunFacts(
        run_id=run_id,
        shard=published.shard,
        shards=store.layout.count,
        now=published.now,
        number=next_number(store, published.shard, published.number),
        base=None,
        evidence_version=published.evidence_version,
        transitions_version=store.ledger.version("transitions"),
        accesses_version=published.accesses_version,
        ledger_head=store.ledger.chain.head,
        fresh_graph=True,
        embedding_model=embedding_model,
        policy=policy,
    )


def fold_again(
    store: Store,
    published: Manifest,
    policy: dict[str, Any],
    scratch: Path,
    run_id: str,
    corrections: pl.DataFrame | None = None,
) -> Run:
    """Folds a shard's ledger into a new working graph.

    Args:
        store: the store, whose embedding model is used.
        published: the snapshot whose evidence, accesses and logical time are used.
        policy: the policy of the fold, as a manifest records it.
        scratch: the folder of the run.
        run_id: the run's name.
        corrections: decisions to apply after the recorded ones (columns DECISION).

    Returns:
        The run, whose working graph and tables hold the result.
    """
    facts = facts_anew(store, published, run_id, embedding_model=store.encoder.model, policy=policy)
    run = Run.begin(scratch, facts)
    if corrections is not None:
        run.decide(CORRECTIONS, corrections)
    with open_graph(run.graph):
        pass
    place(store, run, empty({"evidence_id": TRANSITIONS["run_id"]}))
    update_topics(store, run)
    refresh_embeddings(store, run)
    update_salience(run)
    rows = of_shard(store.ledger.scan("transitions", facts.transitions_version), published.shard)
    with open_graph(run.graph) as graph:
        graph.sync(REVIEW, recorded_queue(in_effect(rows.sort("seq").collect())))
    return run
