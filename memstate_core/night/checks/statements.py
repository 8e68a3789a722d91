"""The values that the ledger's evidence states: the reference for histories and salience.

A structured observation states its fields, title, summary and kind; a segment states those that its decision
recorded, and those that follow from all segments of its topic: participants, session and period.
"""

from __future__ import annotations

import polars as pl

from memstate_core.model.frames import MOMENT, Schema, empty
from memstate_core.model.text import quoted
from memstate_core.night.checks.derived import Derived

STATEMENTS: Schema = {
    "topic_id": pl.String,
    "part": pl.String,
    "name": pl.String,
    "value_json": pl.String,
    "valid_from": MOMENT,
    "observed_at": MOMENT,
    "evidence_ids": pl.List(pl.String),
}
SLOT = ["topic_id", "part", "name"]
SEGMENT_FIELDS = ("participants", "session", "period")
"""Fields that segments give their topic. Their values depend on all its segments; `value_json` is that of the newest,
and null for the older ones."""
_PARTS = ("title", "summary", "topic_kind")


def statements(evidence: pl.DataFrame, derived: Derived) -> pl.DataFrame:
    """All statements (columns STATEMENTS).

    Args:
        evidence: columns EVIDENCE_COLUMNS.
        derived: gives the topic of each piece of evidence.
    """
    homes = derived.homes.select("evidence_id", "topic_id")
    placed = (
        evidence.drop("topic_id")
        .join(homes, on="evidence_id")
        .with_columns(evidence_ids=pl.concat_list("evidence_id"), _since="observed_at")
    )
    segments = derived.segments.with_columns(_since="began_at", observed_at="ended_at")
    rows = [_part(frame, name) for frame in (placed, segments) for name in _PARTS]
    rows += [_fields(placed), _fields(segments), *_of_segments(segments)]
    return pl.concat([empty(STATEMENTS), *(frame.select(STATEMENTS.keys()) for frame in rows)])


def newest(stated: pl.DataFrame) -> pl.DataFrame:
    """Of each slot the statements as of its latest valid time (columns SLOT, value_json, valid_from)."""
    latest = pl.col("valid_from") == pl.col("valid_from").max().over(SLOT)
    return stated.filter(latest).select(*SLOT, "value_json", "valid_from")


def _part(rows: pl.DataFrame, name: str) -> pl.DataFrame:
    stated = rows.filter(pl.col(name).is_not_null())
    return stated.select(
        "topic_id",
        "observed_at",
        "evidence_ids",
        part=pl.lit("topic"),
        name=pl.lit(name),
        value_json=quoted(pl.col(name)),
        valid_from="_since",
    )


def _fields(rows: pl.DataFrame) -> pl.DataFrame:
    one = rows.filter(pl.col("fields").list.len() > 0).explode("fields")
    field = pl.col("fields").struct
    return one.select(
        "topic_id",
        "observed_at",
        "evidence_ids",
        part=pl.lit("field"),
        name=field.field("name"),
        value_json=field.field("value_json"),
        valid_from=pl.coalesce(field.field("valid_from"), "_since"),
    )


def _of_segments(segments: pl.DataFrame) -> list[pl.DataFrame]:
    """Participants, session and period of topics; only the newest segment's value is computed."""
    order = [pl.col("began_at"), pl.col("ended_at"), pl.col("evidence_ids").list.first()]
    ordered = segments.sort("topic_id", *order).with_columns(
        _newest=pl.int_range(pl.len()).reverse().over("topic_id") == 0
    )
    everyone = segments.select("topic_id", "participants").explode("participants", empty_as_null=True)
    names = everyone.drop_nulls().unique().sort("topic_id", "participants")
    people = names.group_by("topic_id", maintain_order=True).agg(_people=quoted(pl.col("participants")).str.join(","))
    span = segments.group_by("topic_id").agg(_from=pl.col("began_at").min(), _to=pl.col("ended_at").max())
    known = ordered.join(people, on="topic_id", how="left").join(span, on="topic_id", how="left")
    values = {
        "participants": (pl.col("participants").list.len() > 0, pl.format("[{}]", "_people")),
        "session": (pl.col("session_id").is_not_null(), quoted(pl.col("session_id"))),
        "period": (pl.lit(True), pl.format('"{}/{}"', _iso("_from"), _iso("_to"))),
    }
    return [
        known.filter(there).select(
            "topic_id",
            "observed_at",
            "evidence_ids",
            part=pl.lit("field"),
            name=pl.lit(name),
            value_json=pl.when("_newest").then(value),
            valid_from="_since",
        )
        for name, (there, value) in values.items()
    ]


def _iso(moment: str) -> pl.Expr:
    seconds, fraction = pl.col(moment).dt.strftime("%Y-%m-%dT%H:%M:%S"), pl.col(moment).dt.microsecond()
    with_fraction = pl.format("{}.{}", seconds, fraction.cast(pl.String).str.zfill(6))
    return pl.concat_str(pl.when(fraction == 0).then(seconds).otherwise(with_fraction), pl.lit("Z"))
