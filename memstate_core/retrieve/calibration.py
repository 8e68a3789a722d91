"""Scores from 0 to 1 that compare what was found of different kinds.

Scores that rank are sums of different parts for topics and for evidence, so their units differ. Here each is taken in
standard deviations from the mean of its kind over all that the question searched (as Montague and Aslam 2001,
"Relevance Score Normalization for Metasearch"), shrunk where there is little. Cantelli's inequality (1928) then bounds
the share of that kind that scores lower, whatever the distribution: at z ≥ 0 it is at least z²/(1+z²), below it at most
1/(1+z²). The score is the middle of what the bound leaves: 0.5 at the mean. It rises with the score that ranks, so it
never inverts a ranking.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from memstate_core.retrieve.scoring import STANDARDISED
from memstate_core.retrieve.standard_scores import PRIOR_ROWS, Array

_DIGITS = 6


@dataclass(frozen=True)
class Moments:
    """Count, sum and sum of squares of scores, and the spread of unrelated ones, were their parts independent."""

    count: int = 0
    sum: float = 0.0
    squares: float = 0.0
    unrelated: float = 0.0

    @classmethod
    def of(cls, scores: Array, parts: Collection[str]) -> Moments:
        """The moments of scores that are sums of these parts."""
        unrelated = math.hypot(*(STANDARDISED[name] for name in parts if name in STANDARDISED))
        return cls(len(scores), float(scores.sum()), float((scores**2).sum()), unrelated)

    def __add__(self, other: Moments) -> Moments:
        return Moments(
            self.count + other.count,
            self.sum + other.sum,
            self.squares + other.squares,
            max(self.unrelated, other.unrelated),
        )


class Calibration:
    """Calibrated scores of one kind.

    Args:
        moments: those of each scope that was searched, the kind's scores in all of them.
    """

    def __init__(self, moments: Iterable[Moments]) -> None:
        whole = sum(moments, Moments())
        rows = whole.count + PRIOR_ROWS
        self._mean = whole.sum / rows
        self._variance = max(0.0, (whole.squares + PRIOR_ROWS * whole.unrelated**2) / rows - self._mean**2)

    def __call__(self, score: float) -> float:
        """The calibrated score of one that ranks."""
        squared = (score - self._mean) ** 2
        share = squared / (self._variance + squared) if squared else 0.0
        bound = math.copysign(share, score - self._mean)
        return round((1 + bound) / 2, _DIGITS)
