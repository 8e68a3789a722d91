"""The comparisons that merges of a run recorded, and the models of their scopes."""

from __future__ import annotations

import math
from dataclasses import dataclass

import polars as pl
from msgspec import UNSET, Struct, UnsetType
from msgspec import json as msgjson

from memstate_core.model.frames import Schema
from memstate_core.state.fold import decisions as kinds

_PAYLOAD = pl.Struct({
    "partner": pl.String,
    "features": pl.List(pl.Struct({"name": pl.String, "value": pl.Float64, "weight": pl.Float64})),
})  # fmt: skip
_LEVELS: Schema = {"scope": pl.String, "name": pl.String, "value": pl.Float64, "given": pl.Float64}
_SCOPES: Schema = {"scope": pl.String, "prior": pl.Float64, "has_names": pl.Boolean}
_NAMES: Schema = {"scope": pl.String, "name": pl.String, "common": pl.String}
IDENTICAL, _LIFT = "identical", math.log(9)
"""What nothing in which two topics differ adds, beside the model."""


class _Model(Struct):
    match_rate: float
    weights: dict[str, list[list[float]]]
    field_names: dict[str, str] | UnsetType = UNSET


@dataclass(frozen=True)
class Models:
    """The last models that a run recorded for scopes in which it merged.

    Attributes:
        scopes: columns scope, prior (the log odds of a match), has_names (whether the model says under which names
            fields were compared, as those of earlier versions do not).
        levels: what each level of a comparison adds, a row a stratum of titles (columns scope, name, value, given).
        names: the names under which fields were compared, by the others (columns scope, name, common).
    """

    scopes: pl.DataFrame
    levels: pl.DataFrame
    names: pl.DataFrame


def models(merged: pl.DataFrame, last: pl.DataFrame) -> Models:
    """The models of the scopes of merges.

    Args:
        merged: the last run's own merges (column scope).
        last: the decisions of the last run (columns TRANSITIONS).
    """
    fitted = last.join(merged, on="scope", how="semi").filter(pl.col("kind") == kinds.MATCH_MODEL).sort("seq")
    fitted = fitted.unique("scope", keep="last", maintain_order=True).select("scope", "payload_json")
    found = {scope: msgjson.decode(payload, type=_Model) for scope, payload in fitted.iter_rows()}
    scopes = [
        (scope, math.log(model.match_rate / (1 - model.match_rate)), model.field_names is not UNSET)
        for scope, model in found.items()
    ]
    levels = [
        (scope, name, float(level), weight)
        for scope, model in found.items()
        for name, strata in [*model.weights.items(), (IDENTICAL, [[0.0, _LIFT]])]
        for stratum in strata
        for level, weight in enumerate(stratum)
    ]
    names = [(scope, *each) for scope, model in found.items() for each in (model.field_names or {}).items()]
    frames = (pl.DataFrame(*rows, orient="row") for rows in ((scopes, _SCOPES), (levels, _LEVELS), (names, _NAMES)))
    return Models(*frames)


def comparisons(merged: pl.DataFrame, last: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The pairs on which merges rely, and the comparisons of these pairs.

    Args:
        merged: the merges (columns seq, scope, topic_id).
        last: the decisions of the last run (columns TRANSITIONS).

    Returns:
        Columns seq, scope, topic_id, partner (null where none is recorded), a row a merge; and seq, scope, topic_id,
        name, value (the level), added (the weight), a row a comparison.
    """
    rows = last.join(merged, on="seq", how="semi").select(
        "seq", "scope", "topic_id", _payload=pl.col("payload_json").str.json_decode(_PAYLOAD)
    )
    rows = rows.unnest("_payload")
    each = rows.select("seq", "scope", "topic_id", "features").explode("features").drop_nulls("features")
    return rows.drop("features"), each.unnest("features").rename({"weight": "added"})
