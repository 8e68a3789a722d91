"""How many answers are missing until nights merge likely pairs that wait (`matching.confirmation`)."""

from __future__ import annotations

import numpy as np
import polars as pl

from memstate_core.model.frames import Schema, empty, project
from memstate_core.revise.answers import answered, answers_of, waiting
from memstate_core.revise.matching.answers import KINDS, WAITING
from memstate_core.revise.matching.confirmation import ROUNDING, needed

NEEDED: Schema = {"scope": pl.String, "likely": pl.Int64, "answers": pl.Int64, "others": pl.Int64}
"""A scope: the likely pairs that wait in it, how many more answers `same` at least confirm others of them, and how many
others at most: pairs of a kind that is seldom asked about take more."""


def answers_needed(transitions: pl.DataFrame, waits: pl.DataFrame, sure: float) -> pl.DataFrame:
    """The scopes in which answers about some likely pairs can confirm others (columns NEEDED), by scope.

    Args:
        transitions: columns TRANSITIONS of one shard, in order.
        waits: suggested pairs (as of `verdicts.open_pairs`).
        sure: the probability from which a pair is likely.
    """
    by_value = (pl.col("probability") >= sure) & ((pl.col("value") - sure).abs() <= ROUNDING)
    likely = waits.filter(by_value, ~pl.col("skipped"), pl.col("pair_kind").is_in(KINDS))
    if likely.is_empty():
        return empty(NEEDED)
    suggested = likely.join(waiting(transitions).select(WAITING.keys()), on=["a", "b"])
    said = answered(transitions)
    scopes = suggested.sort("scope").partition_by("scope", maintain_order=True)
    rows = [_fewest(pairs, said.filter(scope=pairs["scope"][0]), sure) for pairs in scopes]
    return pl.concat([empty(NEEDED), *rows])


def _fewest(pairs: pl.DataFrame, said: pl.DataFrame, sure: float) -> pl.DataFrame:
    """The fewest answers that leave pairs of a scope for nights to merge (a row of NEEDED); none if all are answered.

    Args:
        pairs: likely pairs of the scope (columns pair_kind, and the position of the suggestion as `at`).
        said: answers so far (columns ANSWERED).
        sure: the probability from which a pair is likely.
    """
    kind = pairs["pair_kind"].replace_strict(KINDS, range(len(KINDS)), return_dtype=pl.Int8).to_numpy()
    missing = needed(kind, pairs["at"].to_numpy(), answers_of(said, None), sure=sure)
    answers, confirmed = np.unique(missing, return_counts=True)
    counts = pl.DataFrame({"answers": answers, "others": np.cumsum(confirmed) - answers})
    fewest = counts.filter(pl.col("others") > 0).head(1)
    return project(fewest.with_columns(scope=pl.lit(pairs["scope"][0]), likely=pl.lit(pairs.height)), NEEDED)
