"""Connects the extractor with a run: reads known topics from the store and quarantines refused objects.

A run that applies a plan sends no requests: it uses the answers that the plan's own run cached, so it either makes
the same decisions or is refused. The machine's clock and sleep are passed in from here.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

import polars as pl

from memstate_core.ingest.deduplication import Deduplication
from memstate_core.ingest.validation.quarantine import quarantine_frame
from memstate_core.llm.answer_cache import AnswerCache
from memstate_core.llm.endpoint import Endpoint
from memstate_core.llm.extractor import Extracted, extract
from memstate_core.llm.known_topics import CARDS, KnownTopics
from memstate_core.llm.model_client import ModelClient, Time
from memstate_core.model.frames import Schema, empty, project
from memstate_core.model.step_frames import SEGMENTS
from memstate_core.placement.segment_vectors import Embed, PlacedSegments, with_turn_centroids
from memstate_core.placement.vectors import Embeddings
from memstate_core.run.run import Run
from memstate_core.run.store import Store
from memstate_core.state.graph import REVISION, TOPIC, open_graph

FAILURES: Schema = {"reason": pl.String, "sessions": pl.Int64}
"""Why sessions were not or not completely extracted, and how many."""

MACHINE = Time(lambda: datetime.now(UTC), time.sleep)


@dataclass(frozen=True)
class Topics:
    """Topics with their vectors and titles (columns id, title)."""

    vectors: Embeddings
    titles: pl.DataFrame


@dataclass(frozen=True)
class Extraction:
    """The contribution of a language model to a run; nothing if none is configured.

    Attributes:
        segments: columns SEGMENTS; turns in none of them remain to be placed without the model.
        known: the active topics, those of the segments included.
        counts: of sessions, topics, turns, requests and tokens, each `llm_…`.
        tables: failures by their reason, where there were any.
    """

    segments: pl.DataFrame
    known: Topics
    counts: Mapping[str, int | float] = field(default_factory=dict)
    tables: Mapping[str, pl.DataFrame] = field(default_factory=dict)


def extract_turns(
    store: Store,
    run: Run,
    turns: pl.DataFrame,
    known: Topics,
    past: PlacedSegments,
    embed: Embed,
    clock: Time = MACHINE,
) -> Extraction:
    """Extracts and places the topics of new turns with the configured language model.

    Args:
        store: the store; without `base_url` and `model` in its `[extractor]` nothing happens.
        run: the run in progress.
        turns: evidence that names no topic and was not placed before (columns EVIDENCE).
        known: the shard's active topics.
        past: the turns of earlier runs.
        embed: gives unit vectors for texts.
        clock: clock and sleep.

    Raises:
        ExtractorUnavailable: a language model is configured, and this installation cannot ask it.
    """
    if not store.settings.extractor.configured or turns.is_empty():
        return Extraction(empty(SEGMENTS), known)
    memory = KnownTopics(with_turn_centroids(known.vectors, past), _cards(run, known.vectors.ids))
    with _client(store, run, clock) as client:
        extracted = extract(turns, memory, past.segments, embed, client, store.settings)
    _quarantine(store, run, extracted)
    run.keep_table("extractor", extracted.failures)
    tables = {} if extracted.failures.is_empty() else {"not understood by the language model": extracted.failures}
    return Extraction(extracted.segments, Topics(memory.topics, memory.titles), extracted.counts, tables)


@contextmanager
def _client(store: Store, run: Run, clock: Time) -> Iterator[ModelClient]:
    settings = store.settings.extractor
    with closing(AnswerCache(store.home.answers)) as answers:
        if run.is_planned:
            yield ModelClient(None, answers, settings, clock)
            return
        with closing(Endpoint(settings)) as endpoint:
            yield ModelClient(endpoint, answers, settings, clock)


def _cards(run: Run, ids: pl.Series) -> pl.DataFrame:
    with open_graph(run.graph, read_only=True) as graph:
        topics = graph.read(TOPIC, ["id", "title", "summary"]).filter(pl.col("id").is_in(ids.implode()))
        current = graph.read(REVISION, ["topic_id", "name", "value_json"], "r.part = 'field' AND r.rank = 0")
    grouped = current.sort("topic_id", "name").group_by("topic_id").agg(fields=pl.struct("name", "value_json"))
    described = topics.join(grouped, left_on="id", right_on="topic_id", how="left")
    return project(described.with_columns(pl.col("fields").fill_null([])), CARDS)


def _quarantine(store: Store, run: Run, extracted: Extracted) -> None:
    if not extracted.refusals:
        return
    deduplication, facts = Deduplication(store.ledger), run.facts
    with store.ledger.writing(f"run {facts.run_id}"):
        for name, refusals in extracted.refusals:
            deduplication.quarantine(quarantine_frame(refusals, f"llm/{name}", facts.now, facts.run_id))
