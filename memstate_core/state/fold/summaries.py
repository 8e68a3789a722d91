"""Summaries: one revision that replaces and describes the older revisions of a field.

The newest revisions of a field stay as they are. Those beyond a number that policy or a recorded decision
sets become one summary revision: span, count, first and last value, the range and mean of numbers, how
often each other value held, and the evidence of all. The full history follows from the ledger at any time and
is stored beside the graph of each snapshot, so nothing is lost and a summary can be expanded again.
"""

from __future__ import annotations

import polars as pl

from memstate_core.model.frames import empty, project
from memstate_core.model.graph_tables import REVISIONS
from memstate_core.model.ids import uuid_expr
from memstate_core.model.text import iso_expr
from memstate_core.policy.settings import Policy

SLOT = ["topic_id", "name"]
MOST_VALUES = 50
"""How many different values, the most frequent ones, a summary counts; it gives one number for the others."""


def summarised(histories: pl.DataFrame, summaries: pl.DataFrame, policy: Policy) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Splits histories into visible revisions and revisions that summaries replace.

    Args:
        histories: full histories (columns REVISIONS), newest first by rank.
        summaries: fields to summarise and how many revisions stay (columns topic_id, name, keep).
        policy: its `max_field_history` bounds the revisions of every field, the summary among them.

    Returns:
        Histories with summary revisions at their ends, and the revisions that these replace (both columns
        REVISIONS).
    """
    own = histories.filter(pl.col("part") == "field")
    counts = own.group_by(SLOT).agg(_count=pl.len().cast(pl.Int64))
    if summaries.is_empty() and not (counts["_count"] > policy.max_field_history).any():
        return histories, empty(REVISIONS)
    trimmed = pl.when(pl.col("_count") > policy.max_field_history).then(max(1, policy.max_field_history - 1))
    kept = counts.join(summaries, on=SLOT, how="left").join(_contested(own), on=SLOT, how="left")
    asked = pl.min_horizontal("keep", trimmed)
    kept = kept.with_columns(keep=pl.when(asked.is_not_null()).then(pl.max_horizontal(asked, "_contested")))
    long = kept.filter(pl.col("_count") > pl.col("keep") + 1).select(*SLOT, "keep")
    beyond = own.join(long, on=SLOT).filter(pl.col("rank") >= pl.col("keep")).sort(*SLOT, "rank")
    if not beyond.height:
        return histories, project(beyond, REVISIONS)
    left = histories.join(beyond.select("id"), on="id", how="anti")
    return pl.concat([left, _summary(beyond)]), project(beyond, REVISIONS)


def _contested(own: pl.DataFrame) -> pl.DataFrame:
    """How many revisions there are down to the last that contradicts the current one (columns SLOT and _contested)."""
    current = own.filter((pl.col("rank") == 0) & pl.col("settled_at").is_null() & pl.col("rivals").is_not_null())
    rivals = current.select(id="rivals").explode("id", empty_as_null=False)
    ranks = own.join(rivals, on="id", how="semi").group_by(SLOT)
    return ranks.agg(_contested=pl.col("rank").max() + 1)


def _summary(beyond: pl.DataFrame) -> pl.DataFrame:
    number = pl.col("value_json").cast(pl.Float64, strict=False)
    described = beyond.with_columns(_number=pl.when(number.is_finite()).then(number))
    rows = described.group_by(SLOT, maintain_order=True).agg(
        pl.col("part", "keep", "valid_from").first(),
        pl.col("recorded_at").min(),
        evidence_ids=pl.col("evidence_ids").list.explode(keep_nulls=False, empty_as_null=False).unique().sort(),
        summarises=pl.len().cast(pl.Int64),
        _newest=pl.col("id").first(),
        _oldest=pl.col("id").last(),
        _since=pl.col("valid_from").last(),
        _first=pl.col("value_json").last(),
        _last=pl.col("value_json").first(),
        _numeric=pl.col("_number").is_not_null().all(),
        _low=pl.col("_number").min(),
        _high=pl.col("_number").max(),
        _mean=pl.col("_number").mean(),
    )
    rows = rows.with_columns(_mean=pl.when(pl.col("_mean").is_finite()).then(pl.col("_mean").round(9)))
    counted = rows.join(_counted(beyond), on=SLOT, how="left", maintain_order="left")
    named = counted.with_columns(
        id=uuid_expr("summary", pl.col("_newest"), pl.col("_oldest")),
        rank="keep",
        field_type=pl.lit("json"),
        provenance=pl.lit("revision"),
        why_changed=pl.format("summary of {} older revisions", "summarises"),
        value_json=_document(),
    )
    return project(named, REVISIONS, nulls=("impact_expected", "confidence", "rivals", "settled_at"))


def _counted(beyond: pl.DataFrame) -> pl.DataFrame:
    """How often each value held, most often first, as JSON (columns topic_id, name, _values, _others)."""
    values = beyond.group_by(*SLOT, "value_json").agg(_times=pl.len())
    ranked = values.sort(*SLOT, "_times", "value_json", descending=[False, False, True, False])
    placed = ranked.with_columns(_place=pl.int_range(pl.len()).over(SLOT))
    entry = pl.concat_str(pl.lit('{"value":'), "value_json", pl.lit(',"count":'), "_times", pl.lit("}"))
    shown = pl.col("_place") < MOST_VALUES
    return (
        placed.with_columns(_entry=entry)
        .group_by(SLOT, maintain_order=True)
        .agg(
            _values=pl.concat_str(pl.lit("["), pl.col("_entry").filter(shown).str.join(","), pl.lit("]")).first(),
            _others=pl.col("_times").filter(~shown).sum(),
        )
    )


def _document() -> pl.Expr:
    """The value of a summary revision, as JSON."""
    span = [pl.lit('{"from":"'), iso_expr(pl.col("_since")), pl.lit('","to":"'), iso_expr(pl.col("valid_from"))]
    ends = _members(count="summarises", first="_first", last="_last")
    numbers, counts = _members(min="_low", max="_high", mean="_mean"), _members(values="_values", others="_others")
    return pl.concat_str(*span, pl.lit('"'), ends, pl.when("_numeric").then(numbers).otherwise(counts), pl.lit("}"))


def _members(**columns: str) -> pl.Expr:
    """Members of a JSON object from columns that hold JSON, each after a comma."""
    return pl.concat_str(
        [
            part
            for name, column in columns.items()
            for part in (pl.lit(f',"{name}":'), pl.col(column).cast(pl.String).fill_null("null"))
        ]
    )
