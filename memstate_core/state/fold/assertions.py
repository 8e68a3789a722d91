"""Values stated by evidence, one row each: the input of every history.

A value of a structured observation is exclusive: another value with the same valid time contradicts it. Lists are
not exclusive, and neither are descriptions of segments, since several segments may begin at the same time.
"""

from __future__ import annotations

import polars as pl

from memstate_core.model.frames import empty, project
from memstate_core.model.step_frames import ASSERTIONS
from memstate_core.model.text import iso_expr, quoted

_TOPIC_PARTS = ("title", "summary", "topic_kind")
STATING = ("evidence_id", "observed_at", "imported_at", "provenance", *_TOPIC_PARTS, "fields")
"""The columns of EVIDENCE that assertions are made from."""

_UNSTATED = ("ref_given", "ref_topic_id", "why_changed", "impact_expected", "confidence", "length")
"""Columns that only some assertions have: fields have all but the last, parts of a topic only that."""


def assertions(evidence: pl.DataFrame, evidence_topic: pl.DataFrame, segments: pl.DataFrame) -> pl.DataFrame:
    """All assertions (columns ASSERTIONS) of a shard.

    Args:
        evidence: columns STATING.
        evidence_topic: columns EVIDENCE_TOPIC.
        segments: columns SEGMENTS, already with the topics that they ended up in.
    """
    placed = evidence.select("evidence_id", "imported_at").join(evidence_topic, on="evidence_id")
    recorded = placed.group_by("topic_id").agg(recorded_at=pl.col("imported_at").min())
    return pl.concat([from_evidence(evidence, evidence_topic.drop("scope")), from_segments(segments, recorded)])


def from_evidence(evidence: pl.DataFrame, evidence_topic: pl.DataFrame) -> pl.DataFrame:
    """Assertions (columns ASSERTIONS) of structured observations.

    Args:
        evidence: columns STATING.
        evidence_topic: which topic each piece belongs to (columns evidence_id, topic_id).
    """
    placed = evidence.select(STATING).join(evidence_topic, on="evidence_id")
    placed = placed.with_columns(evidence_ids=pl.concat_list("evidence_id"), recorded_at="imported_at")
    parts = [_topic_part(placed, name) for name in _TOPIC_PARTS]
    return pl.concat(
        [project(frame, ASSERTIONS, nulls=_UNSTATED) for frame in (_stated(placed, 0, "observed_at"), *parts)]
    )


SEGMENT_FIELDS = ("participants", "session", "period")
"""The fields that segments state of themselves: what they were, not what was said in them."""


def from_segments(segments: pl.DataFrame, recorded: pl.DataFrame) -> pl.DataFrame:
    """Assertions of segments: their text, their session, and the fields they state.

    Each also states its topic's participants and period up to then.

    Args:
        segments: columns SEGMENTS, already with the topics that they ended up in.
        recorded: when each topic's turns were recorded (columns topic_id, recorded_at).
    """
    if not segments.height:
        return empty(ASSERTIONS)
    base = (
        _so_far(segments)
        .join(recorded, on="topic_id", how="left")
        .with_columns(
            valid_from="began_at",
            observed_at="ended_at",
            position=pl.lit(0, pl.UInt32),
        )
    )
    spans = pl.concat_str([iso_expr(pl.col("_since")), pl.lit("/"), iso_expr(pl.col("_until"))])
    people = pl.struct(x="participants").struct.json_encode().str.slice(5).str.strip_suffix("}")
    values = [
        ("list", people, pl.col("participants").list.len() > 0),
        ("string", quoted(pl.col("session_id")), pl.col("session_id").is_not_null()),
        ("string", quoted(spans), pl.lit(True)),
    ]
    rows = [
        base.filter(there).with_columns(
            part=pl.lit("field"), name=pl.lit(name), field_type=pl.lit(kind), value_json=value, exclusive=pl.lit(False)
        )
        for name, (kind, value, there) in zip(SEGMENT_FIELDS, values, strict=True)
    ]
    rows += [_topic_part(base, name) for name in _TOPIC_PARTS]
    rows.append(_stated(base.drop("valid_from", "position"), 1, "began_at"))
    return pl.concat([project(frame, ASSERTIONS, nulls=_UNSTATED) for frame in rows])


def _so_far(segments: pl.DataFrame) -> pl.DataFrame:
    """Segments with the participants of their topic up to each (sorted), and its period (`_since`, `_until`)."""
    order = ["topic_id", "began_at", "ended_at", pl.col("evidence_ids").list.first()]
    placed = segments.sort(order).with_columns(
        _at=pl.int_range(pl.len(), dtype=pl.UInt32).over("topic_id"),
        _since=pl.col("began_at").cum_min().over("topic_id"),
        _until=pl.col("ended_at").cum_max().over("topic_id"),
    )
    named = placed.select("topic_id", "_at", name="participants").explode("name").drop_nulls("name")
    first = named.group_by("topic_id", "name").agg(pl.col("_at").min()).sort("topic_id", "_at", "name")
    everyone = first.group_by("topic_id", maintain_order=True).agg(_names="name")
    arrived = first.group_by("topic_id", "_at").agg(_new=pl.len())
    joined = placed.join(everyone, on="topic_id", how="left", maintain_order="left")
    joined = joined.join(arrived, on=["topic_id", "_at"], how="left", maintain_order="left")
    count = pl.col("_new").fill_null(0).cum_sum().over("topic_id")
    return joined.with_columns(participants=pl.col("_names").list.head(count).list.sort())


def _stated(rows: pl.DataFrame, first: int, since: str) -> pl.DataFrame:
    """The values in `fields`, one row each, numbered from `first`; column `since` replaces a missing valid time."""
    return (
        rows.filter(pl.col("fields").list.len() > 0)
        .with_columns(position=pl.int_ranges(first, first + pl.col("fields").list.len(), dtype=pl.UInt32))
        .explode("fields", "position")
        .unnest("fields")
        .with_columns(
            part=pl.lit("field"),
            valid_from=pl.coalesce("valid_from", since),
            field_type=pl.col("field_type").fill_null("string"),
            exclusive=~((pl.col("field_type") == "list") | pl.col("value_json").str.starts_with("[")).fill_null(False),
        )
    )


def _topic_part(rows: pl.DataFrame, name: str) -> pl.DataFrame:
    return rows.filter(pl.col(name).is_not_null()).with_columns(
        part=pl.lit("topic"),
        name=pl.lit(name),
        value_json=quoted(pl.col(name)),
        field_type=pl.lit("string"),
        valid_from="valid_from" if "valid_from" in rows.columns else "observed_at",
        position=pl.lit(0, pl.UInt32),
        length=pl.col(name).str.len_chars(),
        exclusive=pl.lit(False),
    )
