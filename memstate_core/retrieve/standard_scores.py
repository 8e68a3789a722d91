"""Standardised scores: values in standard deviations from their mean, so that different ones can be added.

These are z-scores, as in the fusion of Montague and Aslam 2001, "Relevance Score Normalization for Metasearch". The
mean and the spread of a small scope are shrunk towards prior values with the weight of a few rows (Gelman et al.,
Bayesian Data Analysis, 2.5), which also keeps a single row comparable.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Prior:
    """Mean and spread of a part over many rows that are unrelated to the question."""

    mean: float
    spread: float


COSINE_PRIOR = Prior(0.1, 0.1)
BM25_PRIOR = Prior(0.05, 0.1)
LENGTH_PRIOR = Prior(4.8, 0.8)
EVIDENCE_PRIOR = Prior(4.0, 4.0)
PRIOR_ROWS = 10


def standardised(values: Array, prior: Prior) -> Array:
    """Values in standard deviations from their mean; NaN (unknown) becomes 0.

    Args:
        values: one value a row.
        prior: shrinks mean and spread, with the weight of `PRIOR_ROWS` rows.
    """
    unknown = np.isnan(values)
    some_unknown = bool(unknown.any())
    known = values[~unknown] if some_unknown else values
    rows = len(known) + PRIOR_ROWS
    mean = (known.sum() + PRIOR_ROWS * prior.mean) / rows
    variance = (((known - mean) ** 2).sum() + PRIOR_ROWS * prior.spread**2) / rows
    scores: Array = values - mean
    scores /= np.sqrt(variance)
    if some_unknown:
        scores[unknown] = 0.0
    return scores


def total(parts: Iterable[Array]) -> Array:
    """The sum of some parts, at least one, of each row: added one after another, without a table of all of them."""
    first, *others = parts
    summed = first.copy()
    for part in others:
        summed += part
    return summed
