"""The `placements` step: the topic of every piece of evidence, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from memstate_core.embed.encoder import Vectors
from memstate_core.embed.matrix import matrix
from memstate_core.embed.vector_cache import embed
from memstate_core.llm.extraction import Extraction, Topics, extract_turns
from memstate_core.model.evidence import names_a_topic
from memstate_core.model.forms.registry import FORM_KINDS
from memstate_core.model.frames import empty, project
from memstate_core.model.graph_tables import TOPICS, VECTORS
from memstate_core.model.ledger_tables import DECISION
from memstate_core.model.scope import scopes_of_shard
from memstate_core.model.step_frames import SEGMENTS
from memstate_core.model.text import embedding_text
from memstate_core.placement import turns as unnamed
from memstate_core.placement.entity_mentions import known_names
from memstate_core.placement.named import REFUSED, Placed, place_named
from memstate_core.placement.references import reference_aliases, resolved
from memstate_core.placement.segment_edges import with_edges
from memstate_core.placement.segment_vectors import Embed, placed_segments
from memstate_core.placement.vectors import Embeddings
from memstate_core.run.run import Run
from memstate_core.run.served_state import Served
from memstate_core.run.step import StepResult
from memstate_core.run.store import Store
from memstate_core.run.view import decisions, shard_evidence
from memstate_core.state.fold import decisions as decided
from memstate_core.state.fold.foreign_steps import reversed_across_scopes
from memstate_core.state.fold.identity import across_scopes, homes, survivors
from memstate_core.state.graph import TOPIC, VECTOR, open_graph


def place(store: Store, run: Run, new: pl.DataFrame) -> StepResult:
    """Places all evidence: named evidence as a set, turns by segments, recorded segments as recorded.

    Args:
        store: the store.
        run: the run in progress.
        new: evidence of this run (column evidence_id).

    Returns:
        Columns PLACEMENTS, for the whole shard.
    """
    evidence = shard_evidence(store.ledger, run)
    before = decisions(store.ledger, run, "evidence", decided.CORRECTIONS)
    recorded, merged = decided.segments(before), decided.merges(before)
    turns = _new_turns(evidence, recorded)
    topics = _known_topics(run, turns["scope"].unique().sort())
    extraction = _new_segments(store, run, evidence, turns, recorded, survivors(merged), topics)
    segments = pl.concat([recorded, extraction.segments])
    placed, frame = _placed(evidence, segments, merged)
    apart = across_scopes(merged, homes(frame))
    if apart.height:  # undone merges settle no titles
        placed, frame = _placed(evidence, segments, merged.join(apart, on="dropped", how="anti"))
    run.keep_table("placements", frame)
    run.keep_table("title_aliases", placed.aliases)
    fresh = frame.join(new.select("evidence_id"), on="evidence_id", how="semi")
    made = decided.segment_decisions(_with_edges(extraction.segments, evidence, placed.placements, topics, new))
    named = _named_decisions(placed.placements.join(new, on="evidence_id", how="semi"))
    counts, tables = {**placed_counts(fresh), **extraction.counts}, {"placed": _by_reason(fresh), **extraction.tables}
    lost = [decided.separations(apart), reversed_across_scopes(before, homes(frame))]
    return StepResult(frame, counts, tables, pl.concat([named, made, *lost]))


def recorded_placements(store: Store, shard: Served) -> pl.DataFrame:
    """The placements (columns PLACEMENTS) of all evidence that is named or has a recorded segment, before merges."""
    manifest = shard.snapshot.manifest
    rows = store.ledger.scan("evidence")
    scopes = rows.select(pl.col("scope").unique().sort()).collect()["scope"]
    own = scopes_of_shard(scopes, manifest.shard, store.layout.count)
    evidence = rows.filter(pl.col("scope").is_in(own.implode())).collect()
    _, frame = _placed(evidence, decided.segments(shard.transitions), decided.merges(shard.transitions))
    return frame


def _placed(evidence: pl.DataFrame, segments: pl.DataFrame, merged: pl.DataFrame) -> tuple[Placed, pl.DataFrame]:
    """Placements of named evidence, and of all evidence (columns PLACEMENTS), given the merges in force."""
    settled = [*merged["dropped"], *merged["survivor"]]
    named = place_named(evidence, segments.select("topic_id", "scope"), settled=settled)
    frame = pl.concat([named.placements, unnamed.placements(segments)])
    references = reference_aliases(evidence, frame)
    placed = Placed(resolved(named.placements, references), pl.concat([named.aliases, references]))
    return placed, resolved(frame, references)


def _new_turns(evidence: pl.DataFrame, recorded: pl.DataFrame) -> pl.DataFrame:
    """Evidence that names no topic, and is in no recorded segment."""
    before = recorded.select(pl.col("evidence_ids").explode().alias("evidence_id"))
    return evidence.filter(~names_a_topic()).join(before, on="evidence_id", how="anti")


def _new_segments(
    store: Store,
    run: Run,
    evidence: pl.DataFrame,
    turns: pl.DataFrame,
    recorded: pl.DataFrame,
    followed: pl.DataFrame,
    topics: pl.DataFrame,
) -> Extraction:
    def embedded(texts: Sequence[str]) -> Vectors:
        return embed(store.home.cache, store.encoder, texts).vectors

    of_topics = matrix(topics["embedding"]) if turns.is_empty() else _vectors(topics, store.encoder.model, embedded)
    known = Topics(Embeddings(topics["id"], topics["scope"], of_topics), topics.select("id", "title"))
    if turns.is_empty():
        return Extraction(empty(SEGMENTS), known)
    answering = recorded.with_columns(pl.col("topic_id").replace(followed["dropped"], followed["survivor"]))
    past = placed_segments(answering, evidence, turns["scope"].unique(), embedded)
    extraction = extract_turns(store, run, turns, known, past, embedded)
    taken = extraction.segments.select(pl.col("evidence_ids").explode().alias("evidence_id"))
    rest = turns.join(taken, on="evidence_id", how="anti")
    named = evidence.filter(pl.col("title").is_not_null())
    taken = pl.concat([frame.select("scope", "title") for frame in (topics, named)])
    found = unnamed.place_turns(
        rest, extraction.known.vectors, extraction.known.titles, taken, past, embedded, store.settings
    )
    return replace(extraction, segments=pl.concat([extraction.segments, found]))


def _vectors(topics: pl.DataFrame, model: str, embedded: Embed) -> Vectors:
    """The vectors of topics by this run's model; those that the graph has by another are not compared."""
    if topics.height and (topics["model"] == model).all():
        return matrix(topics["embedding"])
    return embedded(topics.select(embedding_text(pl.col("title"), pl.col("summary"))).to_series().to_list())


def _with_edges(
    segments: pl.DataFrame, evidence: pl.DataFrame, placed: pl.DataFrame, topics: pl.DataFrame, new: pl.DataFrame
) -> pl.DataFrame:
    """New segments with their edges, to active topics and to those that new evidence names."""
    if segments.is_empty():
        return segments
    active, has_new_evidence = (
        pl.col("topic_id").is_in(topics["id"].implode()),
        pl.col("evidence_id").is_in(new["evidence_id"].implode()),
    )
    return with_edges(
        segments, evidence, known_names(topics, evidence, placed.filter(active | has_new_evidence), segments)
    )


def _known_topics(run: Run, scopes: pl.Series) -> pl.DataFrame:
    """The active topics of some scopes in the working graph, except those that only forms of `memory` write.

    Columns id, scope, title, summary, topic_kind, model, embedding. Without scopes no graph is opened.
    """
    columns = ["id", "scope", "title", "summary", "topic_kind"]
    if scopes.is_empty():
        return empty(
            {name: TOPICS[name] for name in columns} | {name: VECTORS[name] for name in ("model", "embedding")}
        )
    with open_graph(run.graph, read_only=True) as graph:
        topics = graph.read(TOPIC, columns, "r.state = 'active' AND r.scope IN $scopes", scopes=scopes.to_list())
        topics = topics.filter(~pl.col("topic_kind").is_in(FORM_KINDS).fill_null(False))
        return topics.join(graph.read_of(VECTOR, ["id", "model", "embedding"], topics["id"]), on="id").sort("id")


def _named_decisions(named: pl.DataFrame) -> pl.DataFrame:
    grouped = named.group_by("scope", "topic_id", "operation", "given", "reason", maintain_order=True).agg(
        evidence_ids=pl.col("evidence_id")
    )
    payload = pl.struct("operation", "given").struct.json_encode()
    return project(grouped.with_columns(kind=pl.lit("placed"), payload_json=payload), DECISION)


def placed_counts(fresh: pl.DataFrame) -> dict[str, int | float]:
    """How many placements (columns PLACEMENTS) there are, by what becomes of the evidence."""
    made = dict(fresh["operation"].value_counts().sort("operation").iter_rows())
    operations = ("new_topic", "extend_topic", "version_field", REFUSED)
    return {"placed": fresh.height, **{name: made.get(name, 0) for name in operations}}


def _by_reason(fresh: pl.DataFrame) -> pl.DataFrame:
    reason = pl.col("reason").str.replace(r"'.*'", "…").str.replace_all(r"\d+(\.\d+)?", "…")
    grouped = fresh.group_by("operation", "given", reason=reason).agg(evidence=pl.len())
    return grouped.sort("evidence", "operation", "reason", descending=[True, False, False]).head(20)
