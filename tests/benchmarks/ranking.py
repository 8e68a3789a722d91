"""How well a ranking finds the marked turns: recall at k, reciprocal rank, and confidence intervals of means.

Evaluation only: nothing here ranks. Scores are per question, so that methods can be compared question by question.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

CUTS = (5, 10, 25, 50)
"""The k of recall@k; a ranking is looked at down to the last of them."""


@dataclass(frozen=True)
class Interval:
    """A mean with its 95 per cent confidence interval."""

    mean: float
    low: float
    high: float


def recall_at(ranked: Sequence[str], marked: Set[str], k: int) -> float:
    """The share of the marked ids among the first k of a ranking without repetitions."""
    return len(marked.intersection(ranked[:k])) / len(marked)


def reciprocal_rank(ranked: Sequence[str], marked: Set[str]) -> float:
    """1 / the rank of the first marked id; 0 where the ranking has none."""
    return next((1 / rank for rank, each in enumerate(ranked, start=1) if each in marked), 0.0)


def scores(ranked: Sequence[str], marked: Set[str]) -> list[float]:
    """Recall at each of CUTS, then the reciprocal rank."""
    return [*(recall_at(ranked, marked, k) for k in CUTS), reciprocal_rank(ranked[: CUTS[-1]], marked)]


def reciprocal_ranks(values: Floats, k: int = 60) -> Floats:
    """1 / (k + rank) of each value; their sum over methods is reciprocal-rank fusion (Cormack and others 2009).

    Args:
        values: scores (n), the highest of rank 1; equal ones in the order of the rows.
        k: the paper's constant.
    """
    ranks = np.empty(len(values))
    ranks[best_first(values)] = np.arange(1, len(values) + 1)
    reciprocal: Floats = 1 / (k + ranks)
    return reciprocal


def z_scores(values: Floats) -> Floats:
    """Values in standard deviations from their mean; all 0 where they do not differ."""
    spread = values.std()
    standard: Floats = (values - values.mean()) / (spread or 1.0)
    return standard


def best_first(values: Floats) -> NDArray[np.intp]:
    """Rows by descending value; equal ones in the order of the rows."""
    return np.argsort(-values, kind="stable")


def bootstrapped(values: Floats, seed: int, resamples: int = 2000) -> Interval:
    """The mean over questions with its percentile bootstrap interval (Efron and Tibshirani 1993, ch. 13).

    The same seed draws the same questions whatever the values, so intervals of differences are paired.

    Args:
        values: one value a question, or one difference of two methods.
        seed: of the draws.
        resamples: how many times as many questions are drawn with replacement.
    """
    rng = np.random.default_rng(seed)
    means = [values[rng.integers(len(values), size=len(values))].mean() for _ in range(resamples)]
    low, high = np.percentile(means, (2.5, 97.5))
    return Interval(float(values.mean()), float(low), float(high))
