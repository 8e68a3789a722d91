"""Reading recorded decisions back: what a fold needs of the transitions, as frames.

A decision that a model or a policy took is not taken again when the ledger is folded; it is read here.
"""

from __future__ import annotations

import polars as pl

from memstate_core.model.frames import DECISION, SEGMENTS, conform

SEGMENT_PLACED, MERGED, UNMERGED, ARCHIVED, RESTORED = (
    "segment_placed",
    "merged",
    "unmerged",
    "archived",
    "restored",
)
MOVED = "moved"
REVIEW_QUEUED, REVIEW_ENDED, PUBLISHED = "review_queued", "review_ended", "published"

_SEGMENT_PAYLOAD = pl.Struct(
    {name: SEGMENTS[name] for name in SEGMENTS if name not in ("topic_id", "scope", "evidence_ids")}
)
_MERGE_PAYLOAD = pl.Struct({"survivor": pl.String, "dropped_title": pl.String, "dropped_kind": pl.String})


def segment_decisions(segments: pl.DataFrame) -> pl.DataFrame:
    """Segments as decisions (columns DECISION), with everything that a model contributed."""
    payload = pl.struct(field.name for field in _SEGMENT_PAYLOAD.fields).struct.json_encode()
    return conform(segments.with_columns(kind=pl.lit(SEGMENT_PLACED), payload_json=payload), DECISION)


def segments(decisions: pl.DataFrame) -> pl.DataFrame:
    """The segments that were recorded (columns SEGMENTS)."""
    rows = decisions.filter(pl.col("kind") == SEGMENT_PLACED).drop("reason")
    decoded = rows.with_columns(_payload=pl.col("payload_json").str.json_decode(_SEGMENT_PAYLOAD))
    return conform(decoded.unnest("_payload"), SEGMENTS)


def merges(decisions: pl.DataFrame) -> pl.DataFrame:
    """Merges in force, in the order in which they were decided.

    Returns:
        Columns dropped, survivor (as decided, not yet followed through later merges), dropped_title,
        dropped_kind, scope.
    """
    rows = decisions.filter(pl.col("kind").is_in([MERGED, UNMERGED]))
    last = rows.group_by("topic_id", maintain_order=True).last().filter(pl.col("kind") == MERGED)
    decoded = last.with_columns(_payload=pl.col("payload_json").str.json_decode(_MERGE_PAYLOAD))
    return decoded.unnest("_payload").select("survivor", "dropped_title", "dropped_kind", "scope", dropped="topic_id")


def ladder(decisions: pl.DataFrame) -> pl.DataFrame:
    """Topics that recorded decisions left in another state than active (columns topic_id, state)."""
    rows = decisions.filter(pl.col("kind").is_in([ARCHIVED, RESTORED]))
    last = rows.group_by("topic_id", maintain_order=True).agg(pl.col("kind").last())
    return last.filter(pl.col("kind") == ARCHIVED).select("topic_id", state=pl.lit("archived"))
