"""Agreement levels of pairs as recorded: what merges say about matches, and old pairs under a new model."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
from msgspec import json as msgjson

from memstate_core.model.frames import Schema, empty
from memstate_core.model.step_frames import PAIRS
from memstate_core.revise.matching.comparison.comparisons import STRATA, TITLE_EDGES
from memstate_core.state.fold.decisions import MATCH_MODEL, MERGED, PAIR_SUGGESTED

LEVELS: Schema = {"pair": pl.UInt32, "name": pl.String, "level": pl.Int64, "stratum": pl.Int64, "weight": pl.Float64}
"""A comparison of a pair: its level, the stratum of the pair's titles, and its weight when it was recorded."""

_RECORDED = pl.Struct(
    {
        "a": pl.String,
        "b": pl.String,
        "survivor": pl.String,
        "partner": pl.String,
        "actor": pl.String,
        "probability": pl.Float64,
        "features": PAIRS["features"],
    }
)
_WEIGHTS: Schema = {
    "scope": pl.String, "name": pl.String, "stratum": pl.Int64, "level": pl.Int64, "today": pl.Float64
}  # fmt: skip


def levels(pairs: pl.DataFrame) -> pl.DataFrame:
    """The comparisons of recorded pairs (columns LEVELS).

    Args:
        pairs: columns pair (a number) and features (as in PAIRS); rows without features are left out.
    """
    rows = pairs.select("pair", "features").explode("features", empty_as_null=True).drop_nulls("features")
    rows = rows.unnest("features").with_columns(level=pl.col("value").cast(pl.Int64))
    title = rows.filter(pl.col("name") == "title").select("pair", _title="level")
    lower = np.array([0.0, *TITLE_EDGES])
    joined = rows.join(title, on="pair", how="left", maintain_order="left").with_columns(pl.col("_title").fill_null(0))
    stratum = np.digitize(lower[joined["_title"].to_numpy()], STRATA)
    return joined.with_columns(stratum=pl.Series(stratum, dtype=pl.Int64)).select(LEVELS.keys())


def shown(decisions: pl.DataFrame) -> pl.DataFrame:
    """What the models said of pairs when they last suggested or merged them.

    The features of a merge are those of its pair only if no third topic supported it more; else they are null.

    Args:
        decisions: columns DECISION, in order.

    Returns:
        Columns a, b (a < b), scope, probability, features.
    """
    rows = decisions.filter(pl.col("kind").is_in([PAIR_SUGGESTED, MERGED])).select(
        "kind", "scope", "topic_id", _payload=pl.col("payload_json").str.json_decode(_RECORDED)
    )
    rows = rows.unnest("_payload").filter(pl.col("actor").is_null())
    merged = pl.col("kind") == MERGED
    direct = (~merged | (pl.col("partner") == pl.col("survivor"))).fill_null(False)
    ends = {
        "a": pl.when(merged).then(pl.min_horizontal("topic_id", "survivor")).otherwise("a"),
        "b": pl.when(merged).then(pl.max_horizontal("topic_id", "survivor")).otherwise("b"),
    }
    own = rows.with_columns(**ends, features=pl.when(direct).then("features"))
    return own.group_by("a", "b", maintain_order=True).agg(
        pl.col("scope", "probability").last(), pl.col("features").drop_nulls().last()
    )


def rescored(pairs: pl.DataFrame, decisions: pl.DataFrame) -> pl.Series:
    """The logit that the last model of its scope gives each recorded pair, from its recorded levels.

    Comparisons that the model does not know keep the weight that they had, as does what the levels do not hold:
    the bound on titles, and competition between matches.

    Args:
        pairs: columns scope, weight (the recorded logit), features; a row's result is null where these are.
        decisions: columns DECISION, in order.
    """
    numbered = pairs.with_row_index("pair")
    known = levels(numbered).join(numbered.select("pair", "scope"), on="pair", maintain_order="left")
    scored = known.join(_last_weights(decisions), on=["scope", "name", "stratum", "level"])
    shift = scored.group_by("pair").agg(shift=(pl.col("today") - pl.col("weight")).sum())
    return numbered.join(shift, on="pair", how="left", maintain_order="left").select(
        today=pl.col("weight") + pl.col("shift").fill_null(0.0)
    )["today"]


def _last_weights(decisions: pl.DataFrame) -> pl.DataFrame:
    """The weights of each scope's last model (columns scope, name, stratum, level, today)."""
    last = decisions.filter(pl.col("kind") == MATCH_MODEL).group_by("scope", maintain_order=True).last()
    rows = [row for scope, payload in last.select("scope", "payload_json").iter_rows() for row in _rows(scope, payload)]
    return pl.DataFrame(rows, schema=_WEIGHTS, orient="row") if rows else empty(_WEIGHTS)


def _rows(scope: str, payload: str) -> list[tuple[str, str, int, int, float]]:
    weights: dict[str, Any] = msgjson.decode(payload)["weights"]
    return [
        (scope, name, stratum, level, float(weight))
        for name, strata in weights.items()
        for stratum, row in enumerate(strata)
        for level, weight in enumerate(row)
    ]


def logistic(logit: pl.Expr) -> pl.Expr:
    """The probability that has a logit."""
    return 1 / (1 + (-logit.clip(-math.log(1e12), math.log(1e12))).exp())
