"""C2 for the figures of merges that a run made by itself: the recorded comparisons and model of its scope give them.

The weight of a pair is at most the log odds of a match among candidates plus what the model adds for the level of each
comparison (Fellegi and Sunter, 1969); bounds on titles only lower it. Its probability is at most that of these odds,
since competing matches only take from it, and a topic's mean is no higher than its strongest pair. Merges of runs that
recorded no model of their scope, as earlier versions did, are left out.
"""

from __future__ import annotations

import polars as pl

from memstate_core.night.checks.check import violating
from memstate_core.night.checks.recorded_comparisons import Models

_ROUNDED, _RATE_ROUNDED = 0.0011, 0.1
"""How far rounding moves a recorded weight, and the log odds of the smallest recorded rate."""


def overrated(merged: pl.DataFrame, compared: pl.DataFrame, models: Models) -> list[pl.DataFrame]:
    """Merges whose figures their comparisons and the model do not give.

    Args:
        merged: the last run's own merges (columns seq, scope, topic_id, probability, weight).
        compared: their comparisons (columns seq, scope, topic_id, name, value, added).
        models: the models of their scopes.
    """
    known = merged.join(models.scopes, on="scope")
    own = compared.join(known, on="seq", how="semi")
    given = own.join(models.levels, on=["scope", "name", "value"], how="left")
    agrees = (pl.col("added") - pl.col("given")).abs() <= _ROUNDED
    given = given.group_by("seq", "name").agg(pl.col("topic_id").first(), agrees=agrees.fill_null(False).any())
    sums = own.group_by("seq").agg(pl.col("added").sum(), _count=pl.len())
    summed = known.join(sums, on="seq", how="left").with_columns(pl.col("added", "_count").fill_null(0))
    most = pl.col("prior") + pl.col("added") + _ROUNDED * pl.col("_count") + _RATE_ROUNDED
    sure = 1 / (1 + (-pl.col("weight")).exp())
    return [
        violating(given.filter(~pl.col("agrees")), "topic_id", "merged by comparisons that the model weighs otherwise"),
        violating(summed.filter(pl.col("weight") > most), "topic_id", "merged with more weight than comparisons give"),
        violating(
            known.filter(pl.col("probability") > sure + _ROUNDED),
            "topic_id",
            "merged with more probability than its weight gives",
        ),
    ]
