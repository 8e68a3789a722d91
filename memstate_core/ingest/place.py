"""The `placements` step: where every piece of evidence belongs, and why."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from memstate_core.embed.cache import embed
from memstate_core.embed.encoder import Vectors
from memstate_core.ingest import turns as unnamed
from memstate_core.ingest.placement import REFUSED, names_a_topic, place_named
from memstate_core.ingest.similarity import Embeddings
from memstate_core.model.frames import DECISION, conform
from memstate_core.state import decisions as decided
from memstate_core.state.graph import TOPIC, VECTOR, open_graph
from memstate_core.state.run import Run
from memstate_core.state.step import StepResult
from memstate_core.state.store import Store
from memstate_core.state.view import decisions, shard_evidence


def place(store: Store, run: Run, new: pl.DataFrame) -> StepResult:
    """Places all evidence: what names its topic as a set, turns by stretches, recorded ones as recorded.

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
    segments = pl.concat([recorded, _new_segments(store, run, evidence, recorded)])
    placed = place_named(
        evidence, segments.select("topic_id", "scope"), settled=[*merged["dropped"], *merged["survivor"]]
    )
    frame = pl.concat([placed.placements, unnamed.placements(segments)])
    run.keep_table("placements", frame)
    run.keep_table("title_aliases", placed.aliases)
    fresh = frame.join(new.select("evidence_id"), on="evidence_id", how="semi")
    made = decided.segment_decisions(segments.slice(recorded.height))
    named = _named_decisions(placed.placements.join(new, on="evidence_id", how="semi"))
    return StepResult(frame, _counts(fresh), {"placed": _by_reason(fresh)}, pl.concat([named, made]))


def _new_segments(store: Store, run: Run, evidence: pl.DataFrame, recorded: pl.DataFrame) -> pl.DataFrame:
    before = recorded.select(pl.col("evidence_ids").explode().alias("evidence_id"))
    turns = evidence.filter(~names_a_topic()).join(before, on="evidence_id", how="anti")

    def embedded(texts: Sequence[str]) -> Vectors:
        return embed(store.home.cache, store.encoder, texts).vectors

    return unnamed.place_turns(turns, _known_topics(run), embedded, store.settings)


def _known_topics(run: Run) -> Embeddings:
    with open_graph(run.graph, read_only=True) as graph:
        topics = graph.read(TOPIC, ["id", "scope", "state"]).filter(pl.col("state") == "active")
        known = topics.join(graph.read(VECTOR, ["id", "embedding"]), on="id").sort("id")
    return Embeddings(known["id"], known["scope"], known["embedding"].to_numpy().reshape(-1, 384))


def _named_decisions(named: pl.DataFrame) -> pl.DataFrame:
    grouped = named.group_by("scope", "topic_id", "operation", "given", "reason", maintain_order=True).agg(
        evidence_ids=pl.col("evidence_id")
    )
    payload = pl.struct("operation", "given").struct.json_encode()
    return conform(grouped.with_columns(kind=pl.lit("placed"), payload_json=payload), DECISION)


def _counts(fresh: pl.DataFrame) -> dict[str, int | float]:
    made = dict(fresh["operation"].value_counts().sort("operation").iter_rows())
    operations = ("new_topic", "extend_topic", "version_field", REFUSED)
    return {"placed": fresh.height, **{name: made.get(name, 0) for name in operations}}


def _by_reason(fresh: pl.DataFrame) -> pl.DataFrame:
    reason = pl.col("reason").str.replace_all(r"\d+(\.\d+)?", "…")
    grouped = fresh.group_by("operation", "given", reason=reason).agg(evidence=pl.len())
    return grouped.sort("evidence", "operation", "reason", descending=[True, False, False]).head(20)
