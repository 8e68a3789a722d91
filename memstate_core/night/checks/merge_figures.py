"""C2 for the figures of merges that a run made by itself: the recorded comparisons and model of its scope give them.

The weight of a pair is at most the log odds of a match among candidates plus what the model adds for the level of each
comparison (Fellegi and Sunter, 1969); bounds on titles only lower it. Its probability is at most that of these odds,
since competing matches only take from it, and a topic's mean is no higher than its strongest pair. Merges of runs that
recorded no model of their scope, as earlier versions did, are left out.
"""

from __future__ import annotations

import math

import polars as pl
from msgspec import Struct
from msgspec import json as msgjson

from memstate_core.model.frames import Schema, empty
from memstate_core.night.checks.check import violating
from memstate_core.state.fold import decisions as kinds

_FEATURES = pl.Struct({
    "features": pl.List(pl.Struct({"name": pl.String, "value": pl.Float64, "weight": pl.Float64}))
})  # fmt: skip
_LEVEL: Schema = {"scope": pl.String, "name": pl.String, "value": pl.Float64, "_given": pl.Float64}
_PRIOR: Schema = {"scope": pl.String, "_prior": pl.Float64}
_IDENTICAL, _LIFT = "identical", math.log(9)
"""What nothing in which two topics differ adds, beside the model."""
_ROUNDED, _RATE_ROUNDED = 0.0011, 0.1
"""How far rounding moves a recorded weight, and the log odds of the smallest recorded rate."""


class _Model(Struct):
    match_rate: float
    weights: dict[str, list[list[float]]]


def overrated(merged: pl.DataFrame, last: pl.DataFrame) -> list[pl.DataFrame]:
    """Merges whose figures their comparisons and the model do not give.

    Args:
        merged: the last run's own merges (columns seq, scope, topic_id, probability, weight).
        last: the decisions of the last run (columns TRANSITIONS).
    """
    levels, priors = _models(last.join(merged, on="scope", how="semi"))
    known = merged.join(priors, on="scope")
    compared = _compared(known, last)
    given = compared.join(levels, on=["scope", "name", "value"], how="left")
    agrees = (pl.col("_added") - pl.col("_given")).abs() <= _ROUNDED
    given = given.group_by("seq", "name").agg(pl.col("topic_id").first(), agrees=agrees.fill_null(False).any())
    sums = compared.group_by("seq").agg(pl.col("_added").sum(), _count=pl.len())
    summed = known.join(sums, on="seq", how="left").with_columns(pl.col("_added", "_count").fill_null(0))
    most = pl.col("_prior") + pl.col("_added") + _ROUNDED * pl.col("_count") + _RATE_ROUNDED
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


def _models(last: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The weights of each level (columns _LEVEL, a row a stratum of titles), and the log odds of a match (_PRIOR).

    Args:
        last: decisions in scopes that have merges; a model is decoded for each of these.
    """
    fitted = last.filter(pl.col("kind") == kinds.MATCH_MODEL).sort("seq")
    fitted = fitted.unique("scope", keep="last").select("scope", "payload_json")
    models = {scope: msgjson.decode(payload, type=_Model) for scope, payload in fitted.iter_rows()}
    rows = [
        (scope, name, float(level), weight)
        for scope, model in models.items()
        for name, strata in [*model.weights.items(), (_IDENTICAL, [[0.0, _LIFT]])]
        for stratum in strata
        for level, weight in enumerate(stratum)
    ]
    priors = [(scope, math.log(model.match_rate / (1 - model.match_rate))) for scope, model in models.items()]
    if not models:
        return empty(_LEVEL), empty(_PRIOR)
    return pl.DataFrame(rows, _LEVEL, orient="row"), pl.DataFrame(priors, _PRIOR, orient="row")


def _compared(known: pl.DataFrame, last: pl.DataFrame) -> pl.DataFrame:
    """The comparisons of merges (columns seq, scope, topic_id, name, value, _added)."""
    payload = pl.col("payload_json").str.json_decode(_FEATURES).struct.field("features")
    rows = last.join(known, on="seq", how="semi").select("seq", "scope", "topic_id", feature=payload)
    each = rows.explode("feature").drop_nulls("feature").unnest("feature")
    return each.rename({"weight": "_added"})
