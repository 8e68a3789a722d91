"""Reliability: how many pairs of a band of probabilities are true, beside what their probabilities say."""

from __future__ import annotations

import polars as pl
from scoring import Ints, Labels, Reals

from memstate_core.revise.reliability import band


def reliability(a: Ints, b: Ints, probability: Reals, labels: Labels) -> pl.DataFrame:
    """Labelled pairs by probability.

    Returns:
        Columns from (where the band begins, as in a run's metadata), pairs, mean (of the probabilities), true (the
        share that is); from the highest band on, empty ones left out.
    """
    kept = ~labels.unlabelled(a, b)
    rows = pl.DataFrame({"probability": probability[kept], "true": labels.true(a[kept], b[kept])})
    means = {"mean": pl.col("probability").mean(), "true": pl.col("true").mean()}
    banded = rows.group_by(band(pl.col("probability")).alias("from"))
    return banded.agg(pl.len().alias("pairs"), **means).sort("from", descending=True)


def lines(table: pl.DataFrame) -> list[str]:
    """The table in Markdown, a band a column."""
    columns = {
        "probability from": [f"{value:.2f}" for value in table["from"]],
        "pairs": [f"{value:,}" for value in table["pairs"]],
        "mean probability": [f"{value:.3f}" for value in table["mean"]],
        "share true": [f"{value:.3f}" for value in table["true"]],
    }
    rows = [f"| {' | '.join([name, *values])} |" for name, values in columns.items()]
    return [rows[0], f"|{'---|' * (table.height + 1)}", *rows[1:]]
