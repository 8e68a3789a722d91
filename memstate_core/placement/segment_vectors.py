"""Segments as vectors: new ones, and those placed by earlier runs.

A segment's vector is the centroid of its turns' vectors. Vectors of earlier turns come from the cache, so a night
encodes none of them again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from memstate_core.embed.encoder import DIMENSION, Vectors
from memstate_core.model.evidence import spoken
from memstate_core.model.frames import Schema
from memstate_core.placement.vectors import Embeddings, centroids, unit

Embed = Callable[[Sequence[str]], Vectors]

_HALF = 2
"""Fewest turns of a half that is compared with the other."""

COMPARED: Schema = {"id": pl.String, "scope": pl.String, "session": pl.String, "comparable": pl.Boolean}


@dataclass(frozen=True)
class SegmentVectors:
    """Segments with the centroids of their turns' vectors.

    Attributes:
        frame: columns COMPARED: id, scope, session (a unique value for each segment outside one), and whether the
            segment has enough content to be compared. New segments are in the order of time within a scope.
        whole: unit centroids (float32, n x d).
        halves: unit centroids of the first and the second half of the turns; zeros where a half is too short.
    """

    frame: pl.DataFrame
    whole: Vectors
    halves: tuple[Vectors, Vectors]

    @classmethod
    def empty(cls, dimension: int = DIMENSION) -> SegmentVectors:
        """No segments."""
        nothing = np.zeros((0, dimension), dtype=np.float32)
        return cls(pl.DataFrame(schema=COMPARED), nothing, (nothing, nothing))


@dataclass(frozen=True)
class PlacedSegments:
    """What earlier runs placed in the scopes that have new turns.

    Attributes:
        segments: the recorded segments.
        topics: the centroid of all turns of each topic that has any.
    """

    segments: SegmentVectors
    topics: Embeddings


def segment_vectors(frame: pl.DataFrame, turns: pl.Series, vectors: Vectors) -> SegmentVectors:
    """Segments with their vectors.

    Args:
        frame: columns COMPARED, a row for each number in `turns`.
        turns: the number of each turn's segment (from 0), in the order of the turns.
        vectors: the turns' unit vectors.
    """
    placed = turns.to_frame("segment").with_columns(
        at=pl.int_range(pl.len()).over("segment"), length=pl.len().over("segment")
    )
    second = (2 * placed["at"] >= placed["length"]).to_numpy()
    long = (placed["length"] >= 2 * _HALF).to_numpy()
    groups = turns.to_numpy().astype(np.int64)
    first, last = (centroids(groups[side & long], vectors[side & long], frame.height) for side in (~second, second))
    return SegmentVectors(frame, centroids(groups, vectors, frame.height), (first, last))


def placed_segments(recorded: pl.DataFrame, evidence: pl.DataFrame, scopes: pl.Series, embed: Embed) -> PlacedSegments:
    """Recorded segments of some scopes with their vectors.

    Args:
        recorded: columns SEGMENTS, with the topics that they belong to now.
        evidence: columns EVIDENCE.
        scopes: the scopes.
        embed: encodes texts as unit vectors.
    """
    own = recorded.filter(pl.col("scope").is_in(scopes.implode())).with_row_index("segment")
    turns = own.select("segment", "topic_id", evidence_id="evidence_ids").explode("evidence_id")
    turn_texts = evidence.select("evidence_id", "text", "actor", "scope")
    turns = turns.join(turn_texts, on="evidence_id", maintain_order="left")
    vectors = embed(turns.select(spoken().fill_null("")).to_series().to_list())
    alone = pl.format("alone/{}", "segment")
    frame = own.select(id="topic_id", scope="scope", session=pl.coalesce("session_id", alone), comparable=pl.lit(True))
    past = segment_vectors(frame, turns["segment"], vectors)
    topics = turns.select("topic_id", "scope").unique("topic_id", keep="first", maintain_order=True).with_row_index()
    groups = turns.join(topics, on="topic_id", maintain_order="left")["index"].to_numpy().astype(np.int64)
    return PlacedSegments(
        past, Embeddings(topics["topic_id"], topics["scope"], centroids(groups, vectors, topics.height))
    )


def with_turn_centroids(topics: Embeddings, past: PlacedSegments) -> Embeddings:
    """Topics with the centroid of their turns as vector; topics without turns keep the vector of their text."""
    rows = topics.ids.to_frame("id").join(
        past.topics.ids.to_frame("id").with_row_index("row"), on="id", how="left", maintain_order="left"
    )["row"]
    has = rows.is_not_null().to_numpy()
    vectors = topics.vectors.copy()
    vectors[has] = past.topics.vectors[rows.drop_nulls().to_numpy()]
    return Embeddings(topics.ids, topics.scopes, unit(vectors))
