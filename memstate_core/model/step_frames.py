"""The columns of frames that are passed between steps, and of evidence as a snapshot serves it."""

from __future__ import annotations

import polars as pl

from memstate_core.model.frames import MOMENT, Schema
from memstate_core.model.ledger_tables import FIELD_VALUE

SEGMENT_EDGE = pl.Struct({"kind": pl.String, "to_topic_id": pl.String})

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
    "links": pl.List(SEGMENT_EDGE),
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
    "value": pl.Float64,
    "pair_kind": pl.String,
    "confirmed_by": pl.Int64,
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
share it and how many of them are in the group; it is null in the review band, where `a` and `b` are the topics that two
groups are merged into, and the rest is that of the likeliest pair between these."""

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
