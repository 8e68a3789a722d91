"""The columns of the graph's tables: topics, fields, revisions, edges, vectors, reviews."""

from __future__ import annotations

import polars as pl

from memstate_core.model.frames import MOMENT, Schema

TOPICS: Schema = {
    "id": pl.String,
    "scope": pl.String,
    "title": pl.String,
    "summary": pl.String,
    "topic_kind": pl.String,
    "salience": pl.Float64,
    "failed_salience": pl.Float64,
    "strength": pl.Float64,
    "reinforced_at": MOMENT,
    "half_life_days": pl.Float64,
    "failed_strength": pl.Float64,
    "embedding_model": pl.String,
    "text_hash": pl.String,
    "state": pl.String,
    "archived": pl.Boolean,
    "pinned": pl.Boolean,
    "merged_into": pl.String,
    "created_at": MOMENT,
    "updated_at": MOMENT,
}
"""Topics. `strength`, `half_life_days` and `failed_strength` are those at `reinforced_at`, the last event that
concerned the topic (`memstate_core.state.fold.strength`)."""

FIELDS: Schema = {
    "id": pl.String,
    "topic_id": pl.String,
    "name": pl.String,
    "field_type": pl.String,
    "ref_topic_id": pl.String,
    "ref_state": pl.String,
    "strength": pl.Float64,
    "reinforced_at": MOMENT,
    "half_life_days": pl.Float64,
    "salience": pl.Float64,
    "detached": pl.Boolean,
    "conflicts": pl.Int64,
}
"""Fields of topics. `detached` fields are left out of default answers; `conflicts` counts the values that
contradict the current one."""

REVISIONS: Schema = {
    "id": pl.String,
    "topic_id": pl.String,
    "part": pl.String,
    "name": pl.String,
    "rank": pl.Int64,
    "value_json": pl.String,
    "field_type": pl.String,
    "valid_from": MOMENT,
    "recorded_at": MOMENT,
    "provenance": pl.String,
    "why_changed": pl.String,
    "impact_expected": pl.String,
    "confidence": pl.Float64,
    "evidence_ids": pl.List(pl.String),
    "rivals": pl.List(pl.String),
    "settled_at": MOMENT,
    "summarises": pl.Int64,
}
"""Histories, newest first: rank 0 is current.

`rivals` holds the ids of revisions that contradict this one as of the same valid time, the nearest first
(null without any); `settled_at` is the later valid time at which this value was asserted again, which ends the
conflict.
`summarises` is the number of revisions that a summary revision replaces, and null for others.
"""

EDGES: Schema = {
    "from_id": pl.String,
    "to_id": pl.String,
    "kind": pl.String,
    "valid_from": MOMENT,
    "valid_until": MOMENT,
    "evidence_ids": pl.List(pl.String),
    "detached": pl.Boolean,
}
"""Edges between topics. `detached` ones are left out of default answers."""

DIMENSION = 384
"""Dimensions of the packaged embedding model, and of a graph without vectors."""


def vector_columns(dimension: int) -> Schema:
    """The columns of the vectors of topics, in the dimension of their model."""
    return {
        "id": pl.String,
        "text_hash": pl.String,
        "model": pl.String,
        "embedding": pl.Array(pl.Float32, dimension),
    }


VECTORS: Schema = vector_columns(DIMENSION)

REVIEWS: Schema = {
    "id": pl.String,
    "topic_id": pl.String,
    "cause_topic_id": pl.String,
    "hops": pl.Int64,
    "reason": pl.String,
    "queued_at": MOMENT,
}
"""Topics queued for review because a topic that they depend on has changed."""
