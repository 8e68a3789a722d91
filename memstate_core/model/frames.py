"""The columns of every frame that is passed between steps or stored in a table.

A frame is declared once, here. `empty` makes one without rows, `project` makes one from a wider frame, `conform`
refuses one that has not exactly the declared columns. No column is ever filled in silence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from memstate_core.model.errors import FrameMismatch

MOMENT = pl.Datetime("us", "UTC")
Schema = Mapping[str, pl.DataType | type[pl.DataType]]

FIELD_VALUE = pl.Struct(
    {
        "name": pl.String,
        "value_json": pl.String,
        "field_type": pl.String,
        "ref_given": pl.Boolean,
        "ref_topic_id": pl.String,
        "why_changed": pl.String,
        "impact_expected": pl.String,
        "confidence": pl.Float64,
        "valid_from": MOMENT,
    }
)
EDGE_TO = pl.Struct(
    {
        "kind": pl.String,
        "to_topic_id": pl.String,
        "to_topic_key": pl.String,
        "valid_from": MOMENT,
        "valid_until": MOMENT,
    }
)
LINK_TO = pl.Struct({"kind": pl.String, "to_topic_id": pl.String})

EVIDENCE: Schema = {
    "evidence_id": pl.String,
    "observation_id": pl.String,
    "scope": pl.String,
    "kind": pl.String,
    "actor": pl.String,
    "session_id": pl.String,
    "turn": pl.Int64,
    "observed_at": MOMENT,
    "provenance": pl.String,
    "source_uri": pl.String,
    "text": pl.String,
    "payload_json": pl.String,
    "content_sha256": pl.String,
    "imported_at": MOMENT,
    "run_id": pl.String,
    "placement": pl.String,
    "topic_id": pl.String,
    "topic_key": pl.String,
    "topic_kind": pl.String,
    "title": pl.String,
    "summary": pl.String,
    "fields": pl.List(FIELD_VALUE),
    "edges": pl.List(EDGE_TO),
}
"""The ledger's table of accepted observations: the outer record, then a typed view of its payload."""

QUARANTINE: Schema = {
    "quarantine_id": pl.String,
    "file": pl.String,
    "line": pl.Int64,
    "reason": pl.String,
    "detail": pl.String,
    "raw": pl.Binary,
    "raw_bytes": pl.Int64,
    "raw_sha256": pl.String,
    "imported_at": MOMENT,
    "run_id": pl.String,
}
"""Rows that were refused. `raw` holds the bytes as found, cut at a megabyte for a line too long to read."""

QUARANTINE_ACTIONS: Schema = {
    "quarantine_id": pl.String,
    "action": pl.String,
    "reason": pl.String,
    "at": MOMENT,
    "run_id": pl.String,
}
"""What was done about refused rows: `action` is `replayed` or `dismissed`."""

TRANSITIONS: Schema = {
    "seq": pl.Int64,
    "shard": pl.String,
    "run_id": pl.String,
    "at": MOMENT,
    "kind": pl.String,
    "scope": pl.String,
    "topic_id": pl.String,
    "payload_json": pl.String,
    "evidence_ids": pl.List(pl.String),
    "reason": pl.String,
    "policy": pl.String,
}
"""Recorded decisions, in order."""

DECISION: Schema = {
    "kind": pl.String,
    "scope": pl.String,
    "topic_id": pl.String,
    "payload_json": pl.String,
    "evidence_ids": pl.List(pl.String),
    "reason": pl.String,
}
"""A transition as a step makes it; seq, shard, run, time and policy are added when the run ends."""

PLACEMENTS: Schema = {
    "evidence_id": pl.String,
    "scope": pl.String,
    "topic_id": pl.String,
    "operation": pl.String,
    "given": pl.Boolean,
    "reason": pl.String,
    "score": pl.Float64,
}
"""The topic of each piece of evidence, before merges."""

ACCESSES: Schema = {
    "access_id": pl.String,
    "scope": pl.String,
    "topic_id": pl.String,
    "fields": pl.List(pl.String),
    "at": MOMENT,
    "source": pl.String,
    "failed": pl.Boolean,
    "recorded_at": MOMENT,
    "run_id": pl.String,
}
"""Accesses to topics, as the query side recorded them.

`fields` names the accessed fields (null: the whole topic, so all of them); `failed` marks feedback that the returned
values were of no use. `scope` is null where the query side did not know it.
"""

EVIDENCE_TOPIC: Schema = {"evidence_id": pl.String, "scope": pl.String, "topic_id": pl.String}
"""The topic of each piece of evidence, after merges."""

ALIASES: Schema = {"alias": pl.String, "scope": pl.String, "topic_id": pl.String}
"""Ids that derive from a title alone, and the topic that has the title."""

ASSERTIONS: Schema = {
    "topic_id": pl.String,
    "part": pl.String,
    "name": pl.String,
    "value_json": pl.String,
    "field_type": pl.String,
    "ref_given": pl.Boolean,
    "ref_topic_id": pl.String,
    "why_changed": pl.String,
    "impact_expected": pl.String,
    "confidence": pl.Float64,
    "valid_from": MOMENT,
    "observed_at": MOMENT,
    "recorded_at": MOMENT,
    "provenance": pl.String,
    "evidence_ids": pl.List(pl.String),
    "position": pl.UInt32,
    "length": pl.UInt32,
    "exclusive": pl.Boolean,
}
"""One value asserted by a piece of evidence, or by the turns of one segment.

`part` is `field`, or `topic` for title, summary and kind. `length` counts the characters of a title, summary
or kind. `exclusive` says whether another value as of the same time contradicts this one.
"""

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
concerned the topic (`memstate_core.state.strength`)."""

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

SEGMENTS: Schema = {
    "topic_id": pl.String,
    "scope": pl.String,
    "evidence_ids": pl.List(pl.String),
    "title": pl.String,
    "summary": pl.String,
    "topic_kind": pl.String,
    "participants": pl.List(pl.String),
    "session_id": pl.String,
    "began_at": MOMENT,
    "ended_at": MOMENT,
    "reason": pl.String,
    "score": pl.Float64,
    "provenance": pl.String,
    "fields": pl.List(FIELD_VALUE),
    "links": pl.List(LINK_TO),
}
"""Segments of turns placed in a topic; without a kind if the topic existed before.

`provenance` is the extractor (null: `import`, which uses no language model), `fields` holds the values that the
segment asserts about its topic, `links` the edges of the topic that it asserts.
"""

PROBLEMS: Schema = {"kind": pl.String, "topic_id": pl.String, "detail": pl.String}
"""What a fold left out or could not resolve, for the report."""

EVIDENCE_INDEX: Schema = {
    "evidence_id": pl.String,
    "observation_id": pl.String,
    "scope": pl.String,
    "topic_id": pl.String,
    "kind": pl.String,
    "actor": pl.String,
    "session_id": pl.String,
    "turn": pl.Int64,
    "observed_at": MOMENT,
    "text": pl.String,
    "vector_row": pl.Int64,
    "tool": pl.String,
    "status": pl.String,
    "path": pl.String,
}
"""Evidence as a snapshot serves it, sorted by scope, observed_at, evidence_id; the last three are details of events,
which snapshots of earlier versions lack. `vector_row` is null if the text is
not embedded."""

PAIRS: Schema = {
    "a": pl.String,
    "b": pl.String,
    "scope": pl.String,
    "probability": pl.Float64,
    "weight": pl.Float64,
    "band": pl.String,
    "features": pl.List(pl.Struct({"name": pl.String, "value": pl.Float64, "weight": pl.Float64})),
    "reading": pl.Struct(
        {
            "agree": pl.List(pl.String),
            "differ": pl.List(pl.Struct({"name": pl.String, "a": pl.String, "b": pl.String})),
            "only": pl.List(pl.String),
            "shared": pl.String,
            "shared_by": pl.Int64,
            "shared_in_group": pl.Int64,
        }
    ),
}
"""Pairs of topics (a < b) in the merge band or the review band; others are left out. The probability that both are the
same, its logit before matches compete (`weight`, natural logarithm of the odds), and for each comparison the level of
agreement (`value`) and the contribution to the logit (`weight`). In the merge band `reading` names the parts (`title`,
`summary`, `field:<name>`) that agree, those that differ with their values, those that only one topic has, and of what
agrees the part that the fewest topics outside the pair's group share, with the number of other topics of the scope that
share it and how many of them are in the group; it is null in the review band."""
MERGE_BAND, REVIEW_BAND = "merge", "review"

CALIBRATION: Schema = {
    "probability_from": pl.Float64,
    "pairs": pl.Int64,
    "merged": pl.Int64,
    "expected_false": pl.Float64,
}
"""Compared pairs by probability: their number, the number merged, and the expected number of false merges."""

CHANGES: Schema = {"topic_id": pl.String, "scope": pl.String, "change": pl.String}
"""Topics that a step created or changed."""


def empty(schema: Schema) -> pl.DataFrame:
    """A frame of these columns without rows."""
    return pl.DataFrame(schema=schema)


def conform(frame: pl.DataFrame, schema: Schema) -> pl.DataFrame:
    """The frame in the declared order and types, where it has exactly the declared columns.

    It is for frames that come from elsewhere: from a file, a table, another step.

    Raises:
        FrameMismatch: a column is missing, or one is not declared.
    """
    if frame.schema == schema:
        return frame
    unknown = [name for name in frame.columns if name not in schema]
    missing = [name for name in schema if name not in frame.columns]
    if unknown or missing:
        raise FrameMismatch(frame.columns, list(schema), missing, unknown)
    return frame.select(pl.col(name).cast(dtype) for name, dtype in schema.items())


def project(frame: pl.DataFrame, schema: Schema, nulls: Sequence[str] = ()) -> pl.DataFrame:
    """The declared columns of a wider frame, in their order and types.

    It is for the function that makes a frame, and says which columns such rows do not have.

    Args:
        frame: has the declared columns, and others that are dropped.
        schema: the declared columns.
        nulls: columns that are null where the frame lacks them.

    Raises:
        FrameMismatch: another column is missing.
    """
    missing = [name for name in schema if name not in frame.columns]
    if not set(missing).issubset(nulls):
        raise FrameMismatch(frame.columns, list(schema), [name for name in missing if name not in nulls], [])
    return frame.select(
        (pl.lit(None) if name in missing else pl.col(name)).cast(dtype).alias(name) for name, dtype in schema.items()
    )
