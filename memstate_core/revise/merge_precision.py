"""The precision of a run's merges, with an interval, from the verdicts on its spot checks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memstate_core.model.frames import MOMENT, Schema, project
from memstate_core.model.verdicts import DIFFERENT, SAME
from memstate_core.revise.spot_checks import DOUBTFUL_ONES, OTHERS

CONFIDENCE = 0.95
"""Least probability with which the interval covers the precision."""
ESTIMATES: Schema = {
    "run_id": pl.String,
    "at": MOMENT,
    "merges": pl.Int64,
    "asked": pl.Int64,
    "answered": pl.Int64,
    "wrong": pl.Int64,
    "precision": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
}
"""A run's merges and the verdicts on its sample: the share that is right, null until all asked for have a verdict, and
its interval."""

Counts = NDArray[np.int64]
Reals = NDArray[np.float64]


def estimates(checks: pl.DataFrame) -> pl.DataFrame:
    """The precision of each run's merges (columns ESTIMATES), newest run first.

    The doubtful ones count as found; the share of the others has the interval of Clopper and Pearson (1934). People may
    answer in any order and undo merges for reasons of their own, so the answers need not be a random part of the
    sample: what is asked for and has no verdict counts as wrong for the lower bound and as right for the upper one.

    Args:
        checks: columns CHECKS of `spot_checks`.
    """
    runs = checks.group_by("run_id", maintain_order=True).agg(
        pl.col("at").max(), merges=pl.len().cast(pl.Int64), doubtful=_answers(DOUBTFUL_ONES), others=_answers(OTHERS)
    )
    merges, doubtful, others = runs["merges"].to_numpy(), _Answers.of(runs["doubtful"]), _Answers.of(runs["others"])
    size = merges - doubtful.asked
    low, high = _range(others, size)
    right = doubtful.right + size * (others.right / np.maximum(others.asked, 1))
    found = pl.DataFrame({
        "asked": doubtful.asked + others.asked,
        "answered": doubtful.answered + others.answered,
        "wrong": doubtful.answered + others.answered - doubtful.right - others.right,
        "precision": right / merges,
        "low": (doubtful.right + low) / merges,
        "high": (doubtful.at_most + high) / merges,
    })  # fmt: skip
    is_complete = pl.col("answered") == pl.col("asked")
    return project(runs.hstack(found.with_columns(pl.when(is_complete).then("precision"))), ESTIMATES)


@dataclass(frozen=True)
class _Answers:
    """Numbers of merges of a stratum, by run: asked for, with a verdict, judged the same."""

    asked: Counts
    answered: Counts
    right: Counts

    @classmethod
    def of(cls, counted: pl.Series) -> _Answers:
        columns = counted.struct.unnest()
        return cls(*(columns[name].to_numpy() for name in ("asked", "answered", "right")))

    @property
    def at_most(self) -> Counts:
        """How many may be right."""
        return self.asked - self.answered + self.right


def _answers(stratum: str) -> pl.Expr:
    """The numbers of `_Answers`."""
    own, verdict = pl.col("drawn_from").eq_missing(pl.lit(stratum)), pl.col("verdict")
    found = {"asked": own, "answered": own & verdict.is_in([SAME, DIFFERENT]), "right": own & (verdict == SAME)}
    return pl.struct(rows.fill_null(False).sum().cast(pl.Int64).alias(name) for name, rows in found.items())


def _range(sampled: _Answers, size: Counts) -> tuple[Reals, Reals]:
    """The least and the greatest number of right ones of a stratum, from those sampled from it."""
    from scipy.special import betaincinv  # only here: importing it takes a while

    is_whole, tail = sampled.asked == size, (1 - CONFIDENCE) / 2
    least, most = sampled.right, sampled.at_most
    low = np.where(least == 0, 0.0, betaincinv(np.maximum(least, 1), sampled.asked - least + 1, tail))
    high = np.where(most == sampled.asked, 1.0, betaincinv(most + 1, np.maximum(sampled.asked - most, 1), 1 - tail))
    return np.where(is_whole, least, size * low), np.where(is_whole, most, size * high)
