"""Changes the embedding model: builds the vectors of another model beside the old ones, then publishes.

A change is a run like a correction: it keeps the evidence, the policy and the decisions of the served snapshot, folds
the ledger again, and embeds all topics and turns by the other model. Until it is published, what is served keeps its
own. The next night searches all scopes for duplicates again, since the match models depend on vectors.

Invariant: whatever a killed process had embedded is in the cache, so the same call goes on there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

import polars as pl
from msgspec import structs

from memstate_core.embed.vector_cache import Embedded, embed
from memstate_core.model.evidence import spoken
from memstate_core.model.frames import empty
from memstate_core.model.ledger_tables import DECISION
from memstate_core.model.progress import tracked
from memstate_core.model.text import embedding_text
from memstate_core.night.corrections import follow, refuse_violations
from memstate_core.night.publish import draft, publish
from memstate_core.retrieve.reader import SnapshotReader
from memstate_core.run.begin import begin_run
from memstate_core.run.publications import publications
from memstate_core.run.run import Run
from memstate_core.run.store import Store
from memstate_core.state.fold.decisions import CORRECTIONS
from memstate_core.state.graph import TOPIC
from memstate_core.state.snapshots import Snapshot


@dataclass(frozen=True)
class Draft:
    """A shard by another model, verified and not yet published."""

    run: Run
    snapshot: Snapshot


def previous_model(store: Store) -> str | None:
    """The name on record of the model before that of the last publication of any shard; None without another."""
    for shard in store.shards:
        names = [manifest.embedding_model for _, manifest in publications(store, shard)]
        for name in reversed(names):
            if name != names[-1]:
                return name
    return None


def embed_served(store: Store, readers: Sequence[SnapshotReader]) -> Embedded:
    """Embeds what some snapshots hold, archived topics included, so that the cache has it.

    Args:
        store: the store, with the model.
        readers: the snapshots.

    Raises:
        ModelUnavailable: the model cannot be loaded.
        DimensionMismatch: it gives vectors of another dimension than expected, or than before.
    """
    texts = [text for reader in readers for text in _texts(reader)]
    return embed(store.home.cache, store.encoder, texts)


def _texts(reader: SnapshotReader) -> list[str]:
    topics = reader.graph.read(TOPIC, ["id", "title", "summary"], "r.state <> 'merged'").sort("id")
    turns = reader.all_evidence().filter(pl.col("vector_row").is_not_null()).select(spoken()).collect()
    named = topics.select(embedding_text(pl.col("title"), pl.col("summary")))
    return [*named.to_series().to_list(), *turns.to_series().fill_null("").to_list()]


@contextmanager
def drafts(store: Store, served: Sequence[Snapshot], run_id: str, at: datetime | None) -> Iterator[list[Draft]]:
    """Drafts of shards by the store's model, removed when the block ends; the caller holds the store's lock.

    Args:
        store: the store, with the model.
        served: the served snapshots of the shards to change.
        run_id: the run's name in the ledger.
        at: its logical time; None for that of each snapshot.

    Raises:
        ModelUnavailable: the model cannot be loaded.
        CheckRefused: a correctness condition would not hold.
        DiskFull: the disk has no room for it.
    """
    made: list[Draft] = []
    try:
        for snapshot in tracked(served, "reembed", len(served), "shards"):
            made.append(_draft(store, snapshot, run_id, at))  # noqa: PERF401 (ended below, also if one fails)
        yield made
    finally:
        for each in made:
            each.run.end()


def _draft(store: Store, served: Snapshot, run_id: str, at: datetime | None) -> Draft:
    pinned = structs.replace(served.manifest, embedding_model=store.encoder.model)
    run = begin_run(store, pinned.shard, run_id, at or pinned.now, pinned=pinned)
    try:
        run.decide(CORRECTIONS, empty(DECISION))
        follow(store, run)
        refuse_violations(store, run)
        return Draft(run, draft(store, run))
    except BaseException:
        run.end()
        raise


def publish_drafts(store: Store, made: Sequence[Draft]) -> list[Snapshot]:
    """Publishes drafts one after the other, and returns the snapshots."""
    return [publish_draft(store, each) for each in made]


def publish_draft(store: Store, made: Draft) -> Snapshot:
    """Publishes a draft."""
    publish(store, made.run, made.snapshot)
    facts = made.run.facts
    return Snapshot(store.home.snapshots(facts.shard) / str(facts.number), made.snapshot.manifest)
