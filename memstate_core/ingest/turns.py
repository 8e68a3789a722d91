"""Turns without structure become topics: cut sessions into stretches, name them, place them.

A stretch that continues a topic of its scope extends it; any other becomes a topic of its own. What was
decided here, with the texts and scores that a model contributed, is recorded, and never decided again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import polars as pl

from memstate_core.embed.encoder import Vectors
from memstate_core.ingest.extract import summaries, titles
from memstate_core.ingest.segmentation import segment
from memstate_core.ingest.similarity import Embeddings, continued
from memstate_core.model.frames import PLACEMENTS, SEGMENTS, conform, empty
from memstate_core.model.ids import uuid_expr
from memstate_core.model.text import embedding_text
from memstate_core.policy.settings import Settings

Embed = Callable[[Sequence[str]], Vectors]
CONVERSATION, NOTE = "conversation", "note"


def spoken() -> pl.Expr:
    """A turn as it is embedded and shown: who said it, then what."""
    return pl.concat_str([pl.col("actor") + ": ", pl.col("text")], ignore_nulls=True)


def place_turns(turns: pl.DataFrame, existing: Embeddings, embed: Embed, settings: Settings) -> pl.DataFrame:
    """Stretches of new turns with the topic of each (columns SEGMENTS).

    Args:
        turns: evidence that names no topic and was not placed before (columns EVIDENCE).
        existing: the shard's active topics with their vectors.
        embed: gives unit vectors for texts.
        settings: lengths of stretches and the floor of similarity.

    A record without a session is a stretch of its own; so is one whose placement is `new_topic`, which
    then is not compared with what exists.
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
    numbers = segment(ordered["_session"], vectors, settings.segment)
    described = _described(ordered.with_columns(segment=numbers), vectors)
    return _with_topics(described, existing, embed, settings.policy.placement_similarity)


def placements(segments: pl.DataFrame) -> pl.DataFrame:
    """Where recorded stretches put each of their turns (columns PLACEMENTS)."""
    made = pl.when(pl.col("title").is_not_null()).then(pl.lit("new_topic")).otherwise(pl.lit("extend_topic"))
    rows = segments.with_columns(operation=made, given=pl.lit(False), evidence_id="evidence_ids")
    return conform(rows.explode("evidence_id"), PLACEMENTS)


def _described(turns: pl.DataFrame, vectors: Vectors) -> pl.DataFrame:
    numbers = turns["segment"].to_numpy()
    sums = np.zeros((int(numbers.max()) + 1, vectors.shape[1]))
    np.add.at(sums, numbers, vectors)
    means = sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-12)
    turns = turns.with_columns(centrality=pl.Series((vectors * means[numbers]).sum(axis=1).round(6)))
    grouped = turns.group_by("segment", maintain_order=True).agg(
        pl.col("scope", "session_id", "_forced").first(),
        pl.col("evidence_id").alias("evidence_ids"),
        participants=pl.col("actor").drop_nulls().unique().sort(),
        began_at=pl.col("observed_at").min(),
        ended_at=pl.col("observed_at").max(),
    )
    return grouped.join(titles(turns), on="segment").join(summaries(turns), on="segment")


def _with_topics(described: pl.DataFrame, existing: Embeddings, embed: Embed, floor: float) -> pl.DataFrame:
    first = pl.col("evidence_ids").list.first()
    kind = pl.when(pl.col("session_id").is_null()).then(pl.lit(NOTE)).otherwise(pl.lit(CONVERSATION))
    described = described.with_columns(id=uuid_expr("segment", pl.col("scope"), first), topic_kind=kind)
    free = described.filter(~pl.col("_forced"))
    texts = free.select(embedding_text(pl.col("title"), pl.col("summary"))).to_series().to_list()
    found = continued(Embeddings(free["id"], free["scope"], embed(texts)), existing, floor)
    placed = described.join(found, on="id", how="left", maintain_order="left")
    goes_on = pl.col("topic_id").is_not_null()
    continues = pl.format("continues a topic of its scope: cosine {} reaches the bar {}", "score", "bar")
    own = pl.format("{} turns of one subject", pl.col("evidence_ids").list.len())
    return conform(
        placed.with_columns(
            reason=pl.when(goes_on).then(continues).otherwise(own),
            title=pl.when(~goes_on).then("title"),
            topic_kind=pl.when(~goes_on).then("topic_kind"),
            topic_id=pl.coalesce("topic_id", "id"),
        ),
        SEGMENTS,
    )
