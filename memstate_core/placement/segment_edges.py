"""Edges of new segments: to the next topic of their session, and to topics whose names they mention.

They are recorded with the decision that places the segment, so that a rebuild replays them.
"""

from __future__ import annotations

import polars as pl

from memstate_core.model.frames import Schema, conform, project
from memstate_core.model.step_frames import SEGMENTS
from memstate_core.placement.entity_mentions import mentions

ASSOCIATED, MENTIONS = "associated_with", "mentions"
SEGMENT_EDGES: Schema = {"segment": pl.Int64, "kind": pl.String, "to_topic_id": pl.String}


def with_edges(segments: pl.DataFrame, evidence: pl.DataFrame, names: pl.DataFrame) -> pl.DataFrame:
    """Segments with the edges found here added to those that they have (columns SEGMENTS).

    Args:
        segments: the new segments, in the order of time within a scope.
        evidence: columns EVIDENCE, including all of their turns.
        names: names of known topics (columns scope, topic_id, name), from `known_names`.
    """
    numbered = segments.with_row_index("segment").with_columns(pl.col("segment").cast(pl.Int64))
    texts = numbered.select("segment", "scope", "topic_id", "began_at", evidence_id="evidence_ids").explode(
        "evidence_id"
    )
    turns = texts.join(evidence.select("evidence_id", "text"), on="evidence_id", maintain_order="left")
    mentioned = mentions(turns, names).with_columns(kind=pl.lit(MENTIONS))
    own = numbered.select("segment", "links").explode("links").drop_nulls("links").unnest("links")
    both = pl.concat([conform(frame, SEGMENT_EDGES) for frame in (own, _next_in_session(numbered), mentioned)])
    listed = (
        both.unique(maintain_order=True)
        .group_by("segment", maintain_order=True)
        .agg(links=pl.struct("kind", "to_topic_id").sort_by("kind", "to_topic_id"))
    )
    joined = numbered.drop("links").join(listed, on="segment", how="left", maintain_order="left")
    return project(joined.with_columns(pl.col("links").fill_null([])), SEGMENTS)


def _next_in_session(segments: pl.DataFrame) -> pl.DataFrame:
    """From each segment's topic to that of the next segment of its session, where the two differ."""
    session = ["scope", "session_id"]
    within = segments.filter(pl.col("session_id").is_not_null()).sort(*session, "began_at", maintain_order=True)
    after = within.with_columns(to_topic_id=pl.col("topic_id").shift(-1).over(session), kind=pl.lit(ASSOCIATED))
    return after.filter(pl.col("to_topic_id") != pl.col("topic_id")).select(list(SEGMENT_EDGES))
