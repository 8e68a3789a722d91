"""Placement of turns, which name no topic: sessions are cut into segments, described, and given a topic.

A segment that continues a topic of its scope, or an earlier segment, extends it, and by policy renews its summary or
title; any other creates a topic.
Invariant: each decision is recorded with the texts and scores that a model contributed, and is never made again.
"""

from __future__ import annotations

import polars as pl

from memstate_core.embed.encoder import Vectors
from memstate_core.model.evidence import spoken
from memstate_core.model.frames import empty, project
from memstate_core.model.ids import uuid_expr
from memstate_core.model.step_frames import PLACEMENTS, SEGMENTS
from memstate_core.placement.continuation import continued
from memstate_core.placement.segment_vectors import (
    COMPARED,
    Embed,
    PlacedSegments,
    SegmentVectors,
    segment_vectors,
    with_turn_centroids,
)
from memstate_core.placement.text.describe import described
from memstate_core.placement.text_tiling import segment
from memstate_core.placement.vectors import Embeddings
from memstate_core.policy.settings import Policy, Settings

CONVERSATION, NOTE = "conversation", "note"
SUBSTANCE = 8
"""Fewest distinct content words of a comparable segment: greetings alone continue nothing."""


def place_turns(
    turns: pl.DataFrame,
    existing: Embeddings,
    titles: pl.DataFrame,
    taken: pl.DataFrame,
    past: PlacedSegments,
    embed: Embed,
    settings: Settings,
) -> pl.DataFrame:
    """Segments of new turns with the topic of each (columns SEGMENTS), in the order of time within a scope.

    Args:
        turns: evidence that names no topic and was not placed before (columns EVIDENCE).
        existing: the shard's active topics with the vectors of their texts.
        titles: their titles (columns id, title).
        taken: titles in use by other topics (columns scope, title), avoided where the phrases allow it.
        past: segments placed by earlier runs.
        embed: encodes texts as unit vectors.
        settings: lengths of segments, and thresholds for continuing a topic.

    A turn without a session is a segment of its own. So is one whose placement is `new_topic`, which continues
    nothing.
    """
    if not turns.height:
        return empty(SEGMENTS)
    own_topic = pl.col("placement") == "new_topic"
    alone = pl.col("session_id").is_null() | own_topic.fill_null(False)
    session = pl.when(alone).then("alone/" + pl.col("evidence_id")).otherwise("in/" + pl.col("session_id"))
    ordered = turns.with_columns(
        _session=pl.concat_str("scope", session, separator="\x1f"), _forced=own_topic.fill_null(False)
    ).sort("_session", "turn", "observed_at", "evidence_id", nulls_last=True)
    vectors = embed(ordered.select(spoken()).to_series().to_list())
    ordered = _numbered(ordered.with_columns(segment=segment(ordered["_session"], vectors, settings.segment)))
    vectors = vectors[ordered["_row"].to_numpy()]
    segments = _described(ordered, vectors, embed, taken)
    new = segment_vectors(_comparable(segments), ordered["segment"], vectors)
    return _with_topics(segments, titles, new, with_turn_centroids(existing, past), past.segments, settings.policy)


def placements(segments: pl.DataFrame) -> pl.DataFrame:
    """The placement of each turn of recorded segments (columns PLACEMENTS)."""
    made = pl.when(pl.col("topic_kind").is_not_null()).then(pl.lit("new_topic")).otherwise(pl.lit("extend_topic"))
    rows = segments.with_columns(operation=made, given=pl.lit(False), evidence_id="evidence_ids")
    return project(rows.explode("evidence_id"), PLACEMENTS)


def _numbered(turns: pl.DataFrame) -> pl.DataFrame:
    """Turns with their segments numbered by scope and time, and `_row`, their previous position."""
    began = pl.col("observed_at").min().over("segment")
    moved = turns.with_columns(_began=began, _row=pl.int_range(pl.len()))
    ordered = moved.sort("scope", "_began", "segment", maintain_order=True)
    return ordered.with_columns(segment=pl.col("segment").rle_id().cast(pl.Int64)).drop("_began")


def _described(turns: pl.DataFrame, vectors: Vectors, embed: Embed, taken: pl.DataFrame) -> pl.DataFrame:
    """Segments with their titles, summaries and ids, one row per number."""
    grouped = turns.group_by("segment", maintain_order=True).agg(
        pl.col("scope", "session_id", "_session", "_forced").first(),
        pl.col("evidence_id").alias("evidence_ids"),
        participants=pl.col("actor").drop_nulls().unique().sort(),
        began_at=pl.col("observed_at").min(),
        ended_at=pl.col("observed_at").max(),
    )
    segments = grouped.join(described(turns, vectors, embed, taken), on="segment", maintain_order="left")
    kind = pl.when(pl.col("session_id").is_null()).then(pl.lit(NOTE)).otherwise(pl.lit(CONVERSATION))
    return segments.with_columns(
        id=uuid_expr("segment", pl.col("scope"), pl.col("evidence_ids").list.first()), topic_kind=kind
    )


def _comparable(segments: pl.DataFrame) -> pl.DataFrame:
    comparable = (pl.col("substance") >= SUBSTANCE) & ~pl.col("_forced")
    return segments.select("id", "scope", session="_session", comparable=comparable).select(list(COMPARED))


def _with_topics(
    segments: pl.DataFrame,
    titles: pl.DataFrame,
    new: SegmentVectors,
    existing: Embeddings,
    past: SegmentVectors,
    policy: Policy,
) -> pl.DataFrame:
    names = pl.concat([titles.select("id", "title"), segments.select("id", "title")])
    found = continued(new, existing, past, policy)
    named = found.join(names.rename({"id": "topic_id", "title": "_topic_title"}), on="topic_id", how="left")
    placed = segments.join(named, on="id", how="left", maintain_order="left")
    continues_topic = pl.col("topic_id").is_not_null()
    cosine, probability = (pl.col(name).round(2) for name in ("score", "probability"))
    continues = pl.format("continues '{}': cosine {}, probability {}", "_topic_title", cosine, probability)
    own = pl.format("{} turns of one subject", pl.col("evidence_ids").list.len())
    renews = policy.continuation_renews
    return project(
        placed.with_columns(
            reason=pl.when(continues_topic).then(continues).otherwise(own),
            title=pl.when(~continues_topic | (renews == "title_and_summary")).then("title"),
            summary=pl.when(~continues_topic | (renews != "nothing")).then("summary"),
            topic_kind=pl.when(~continues_topic).then("topic_kind"),
            topic_id=pl.coalesce("topic_id", "id"),
            provenance=pl.lit("import"),
        ),
        SEGMENTS,
        nulls=("fields", "links"),
    )
