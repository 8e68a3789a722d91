"""Small plots in the metadata of assets: frames with a column of bars, which the Dagster UI shows as tables.

Bars are characters: a plot takes about a kilobyte of each run in Dagster's storage, and needs no library or script.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from memstate_core.model.step_frames import MERGE_BAND, REVIEW_BAND

Plots = dict[str, pl.DataFrame]
"""Frames to show, by title."""

WIDTH = 24
"""Characters of the longest bar."""
SNAPSHOTS = 12
"""Maximum number of snapshots in the plot of growth."""
_FULL, _TRACE = "█", "▏"
_DECADES = (0.001, 0.01, 0.1, 1.0)


def with_bars(rows: pl.DataFrame, column: str, name: str = "plot") -> pl.DataFrame:
    """Adds a bar for each value of a column, in proportion to the largest.

    Args:
        rows: the values; null, negative and undefined ones have no bar.
        column: the column to draw.
        name: that of the new column. A positive value too small for a character has a thin line.
    """
    value = pl.when(pl.col(column).cast(pl.Float64).is_finite() & (pl.col(column) > 0)).then(pl.col(column))
    length = (value / value.max() * WIDTH).round().fill_null(0).cast(pl.Int64)
    bar = pl.lit(_FULL * WIDTH).str.slice(0, length)
    return rows.with_columns(
        pl.when(value.is_not_null() & (length == 0)).then(pl.lit(_TRACE)).otherwise(bar).alias(name)
    )


def probabilities(pairs: pl.DataFrame) -> Plots:
    """Pairs to merge and to review by probability, in tenths.

    Args:
        pairs: columns PAIRS.
    """
    labels = [f"{tenth / 10:.1f} to {(tenth + 1) / 10:.1f}" for tenth in range(10)]
    tenths = pl.DataFrame({"_tenth": range(10), "label": labels}, {"_tenth": pl.Int64, "label": pl.String})
    tenth = (pl.col("probability") * 10).floor().clip(0, 9).cast(pl.Int64)
    counted = pairs.group_by(_tenth=tenth).agg(
        pairs=pl.len(), to_merge=(pl.col("band") == MERGE_BAND).sum(), to_review=(pl.col("band") == REVIEW_BAND).sum()
    )
    rows = tenths.join(counted, on="_tenth", how="left", maintain_order="left").fill_null(0)
    named = rows.select("to_merge", "to_review", "pairs", probability="label")
    shown = with_bars(named, "pairs").select("probability", "to_merge", "to_review", "plot")
    return {"probabilities": shown} if pairs.height else {}


def salience_by_decade(salience: pl.DataFrame) -> Plots:
    """Topics that are not tombstones by salience, in powers of ten.

    Args:
        salience: a row per topic (at least column salience).
    """
    labels = [f"below {_DECADES[0]:g}", *(f"from {lowest:g}" for lowest in _DECADES)]
    decade = sum((pl.col("salience") >= lowest).cast(pl.Int64) for lowest in _DECADES)
    counted = salience.group_by(_decade=pl.lit(0, pl.Int64) + decade).agg(topics=pl.len())
    rows = pl.DataFrame({"_decade": range(len(labels)), "salience": labels}, schema_overrides={"_decade": pl.Int64})
    joined = rows.join(counted, on="_decade", how="left", maintain_order="left").fill_null(0)
    return {"salience of topics": with_bars(joined.select("salience", "topics"), "topics")} if salience.height else {}


def growth_of(snapshots: pl.DataFrame) -> Plots:
    """Active topics and evidence of the last snapshots.

    Args:
        snapshots: columns snapshot, active and evidence, oldest first.
    """
    last = with_bars(snapshots.tail(SNAPSHOTS), "active", "active topics")
    last = with_bars(last, "evidence", "all evidence")
    shown = last.select("snapshot", "active", "active topics", "evidence", "all evidence")
    return {"growth": shown} if shown.height else {}


def seconds_of(notes: Mapping[str, Mapping[str, Any]]) -> Plots:
    """Seconds of the steps that a run has done.

    Args:
        notes: what the run noted of each step, by name.
    """
    rows = pl.DataFrame(
        [(step, float(note["seconds"])) for step, note in notes.items()],
        {"step": pl.String, "seconds": pl.Float64},
        orient="row",
    )
    return {"seconds by step": with_bars(rows, "seconds")} if rows.height else {}
