"""Prior distributions of agreement levels, used before a store has enough pairs of its own.

The distributions are round figures of how records of one thing agree in catalogues, bibliographies and
address lists; they contain no term or field of any of them. They decide in a store too small to fit, and
bound how far a fit can move.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

MATCH_RATE = 0.05
"""Share of candidate pairs that match, to begin with."""
TEMPER = {"meaning": 0.5, "rank": 0.5, "summary": 0.8}
"""Factors on the weights of comparisons that are partly redundant."""
AT_MOST = {"numbers": (-2.5, -0.5)}
"""Bounds on the weights of a comparison's lowest levels: different numbers are never evidence for a match, even
in a store with many near-identical titles."""

_MATCHES: dict[str, tuple[float, ...]] = {
    "title": (0.02, 0.02, 0.03, 0.05, 0.07, 0.10, 0.13, 0.15, 0.08, 0.35),
    "numbers": (0.06, 0.10, 0.08, 0.25, 0.21, 0.30),
    "rarity": (0.05, 0.10, 0.25, 0.60),
    "meaning": (0.01, 0.01, 0.02, 0.05, 0.10, 0.16, 0.20, 0.15, 0.30),
    "rank": (0.20, 0.20, 0.60),
    "summary": (0.06, 0.04, 0.06, 0.07, 0.09, 0.11, 0.20, 0.20, 0.17),
}
_FIELD = (0.12, 0.04, 0.06, 0.08, 0.07, 0.06, 0.57)
_OTHERS: dict[str, tuple[float, ...]] = {
    "title": (0.40, 0.20, 0.14, 0.10, 0.06, 0.04, 0.02, 0.01, 0.01, 0.02),
    "numbers": (0.70, 0.13, 0.03, 0.08, 0.05, 0.01),
    "rarity": (0.30, 0.30, 0.25, 0.15),
    "rank": (0.65, 0.25, 0.10),
    "meaning": (0.10, 0.10, 0.14, 0.18, 0.18, 0.14, 0.10, 0.04, 0.02),
    "summary": (0.30, 0.12, 0.16, 0.14, 0.10, 0.08, 0.06, 0.03, 0.01),
}
_OTHER_FIELD = (0.50, 0.10, 0.08, 0.06, 0.03, 0.03, 0.20)


UNORDERED = {"time": 6}
"""Comparisons without a prior of their own and without better or worse levels, with how many they have."""


def level_prior(comparison: str) -> NDArray[np.float64] | None:
    """The distribution of a comparison's levels among matches, shape (levels,); None where nothing is assumed."""
    return None if comparison in UNORDERED else np.asarray(_MATCHES.get(comparison, _FIELD))


def others_prior(comparison: str) -> NDArray[np.float64]:
    """The distribution of a comparison's levels among candidates that are no matches, shape (levels,)."""
    return np.asarray(_OTHERS.get(comparison, _OTHER_FIELD))


def levels_of(comparison: str) -> int:
    """How many levels a comparison has."""
    return UNORDERED.get(comparison) or len(_MATCHES.get(comparison, _FIELD))


def ceiling(surprise: NDArray[np.float64], same_title: NDArray[np.bool_]) -> NDArray[np.float64]:
    """The largest weight that the title alone can have, as a logit.

    Among n topics, chance lets n * exp(-s) others share units of joint rarity s, so the odds of a match
    are at most exp(s) / n; one nat is subtracted as a margin. Titles that differ stay at even odds.
    """
    bound = surprise - 1.0
    return np.where(same_title, bound, np.minimum(bound, 0.0))
