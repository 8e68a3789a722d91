"""Reliability of probabilities: how often people judged pairs the same, by the probability that the model gave them."""

from __future__ import annotations

import polars as pl

from memstate_core.model.frames import Schema, empty
from memstate_core.model.verdicts import DIFFERENT, SAME
from memstate_core.revise.recorded_levels import shown
from memstate_core.state.fold.decisions import judgements

BANDS = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.97, 0.99)
"""Lower ends of the bands of probability in which pairs are counted."""
RELIABILITY: Schema = {
    "probability_from": pl.Float64,
    "verdicts": pl.Int64,
    "expected_same": pl.Float64,
    "judged_same": pl.Float64,
}
"""Judged pairs by probability: their mean probability, and the share that people judged the same."""


def band(probability: pl.Expr) -> pl.Expr:
    """The lower end of the band that a probability falls into."""
    lower = [pl.when(probability >= start).then(pl.lit(start)) for start in reversed(BANDS)]
    return pl.coalesce(*lower)


def reliability(decisions: pl.DataFrame) -> pl.DataFrame:
    """Verdicts beside the probabilities with which their pairs were suggested or merged (columns RELIABILITY).

    The pairs are those that people were shown, not a sample of all.

    Args:
        decisions: columns DECISION, in order.
    """
    given = judgements(decisions).filter(pl.col("verdict").is_in([SAME, DIFFERENT]))
    if given.is_empty():
        return empty(RELIABILITY)
    judged = given.join(shown(decisions), on=["a", "b"])
    grouped = judged.group_by(probability_from=band(pl.col("probability"))).agg(
        verdicts=pl.len().cast(pl.Int64),
        expected_same=pl.col("probability").mean().round(3),
        judged_same=(pl.col("verdict") == SAME).mean().round(3),
    )
    return grouped.sort("probability_from", descending=True)
