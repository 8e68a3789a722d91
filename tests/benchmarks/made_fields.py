"""Fields of structured observations, as JSON.

A value is a hash of what it belongs to and of the weeks it holds for. So two observations of a field agree
as long as no change lies between them, whichever is read first, and late data repeats old values.
"""

from __future__ import annotations

from datetime import date

import numpy as np
import polars as pl
from drawing import Spec, choose, column, fill, mix, period, pick, quoted
from vocabulary import PEOPLE, PLACES, REASONS, STATUSES, TAGS

FIELDS_PER_KIND = 6
FIELD_DAYS = 45
"""For how long a value holds."""


def fields(observed: pl.DataFrame, spec: Spec) -> pl.DataFrame:
    """One to three fields per row, as JSON (columns row, fields)."""
    count = (pl.col("draw") % 3 + 1).cast(pl.Int64)
    long = observed.select("row", "origin", "kind_number", "observed", "draw", nth=pl.int_ranges(count))
    long = long.explode("nth")
    slot = (pl.col("draw") // 3 + pl.col("nth").cast(pl.UInt64)) % FIELDS_PER_KIND
    long = long.with_columns(field=(pl.col("kind_number").cast(pl.UInt64) * 2 + slot) % len(_renderers()))
    owner = (spec.seed, 5, column(long, "origin"), column(long, "field"))
    value = pl.Series(mix(*owner, period(long, FIELD_DAYS, *owner)) >> np.uint64(8))
    long = long.with_columns(value=value).select("row", json=_field_json())
    return long.group_by("row", maintain_order=True).agg(fields=pl.col("json").str.join(","))


def _renderers() -> list[tuple[str, str, pl.Expr]]:
    """Name, type and JSON value of every field; a name has one type wherever it is used."""
    value = pl.col("value")
    two_tags = {"first": pick(TAGS, value), "second": pick(TAGS, value, 1)}
    some_day = pl.lit(date(2026, 1, 1)) + pl.duration(days=value % 365)
    limits = {"low": value % 50, "high": value % 50 + 1 + (value // 50) % 50}
    return [
        ("status", "string", quoted(pick(STATUSES, value))),
        ("budget_eur", "int", (value % 90_000).cast(pl.String)),
        ("due", "date", quoted(some_day.dt.to_string("%Y-%m-%d"))),
        ("owner", "string", quoted(pick(PEOPLE, value))),
        ("effort_days", "float", pl.concat_str(value % 400, pl.lit("."), (value // 400) % 10)),
        ("on_hold", "bool", pick(("true", "false"), value)),
        ("tags", "list", fill('["<first>","<second>"]', two_tags)),
        ("reviewed_at", "datetime", quoted(some_day.dt.to_string("%Y-%m-%dT09:00:00Z"))),
        ("limits", "json", fill('{"low":<low>,"high":<high>}', limits)),
        ("site", "string", quoted(pick(PLACES, value))),
        ("headcount", "int", (value % 300).cast(pl.String)),
        ("score", "float", pl.concat_str(pl.lit("0."), value % 100 + 100)),
    ]


def _field_json() -> pl.Expr:
    draw = pl.col("value") // 1009
    reason = fill(',"why_changed":"<reason>"', {"reason": pick(REASONS, draw, 1)})
    confidence = fill(',"confidence":0.<digit>', {"digit": draw % 9 + 1})
    rest = pl.concat_str(
        pl.when(draw % 4 == 0).then(reason).otherwise(pl.lit("")),
        pl.when(draw % 5 == 0).then(confidence).otherwise(pl.lit("")),
    )
    template = '{"name":"<name>","value":<value>,"field_type":"<type>"<rest>}'
    options = [
        fill(template, {"name": pl.lit(name), "value": value, "type": pl.lit(kind), "rest": rest})
        for name, kind, value in _renderers()
    ]
    return choose(pl.col("field"), options)
