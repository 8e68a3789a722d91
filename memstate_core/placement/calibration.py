"""The probability that two segments of a scope share a subject, given their cosine.

Estimated from the scope itself, without labels. Cosines of the two halves of a segment give the distribution for one
subject; cosines of segments of different sessions give the distribution for different subjects. A half carries less
information than the whole, for which the Spearman-Brown formula (1910) corrects. Both distributions are taken as
normal, and Bayes' rule gives the probability. With few values, the estimates shrink towards fixed priors.

The scope's mean vector (who talks, and how) is subtracted first: without that, any two chats of the same people look
alike.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from memstate_core.embed.encoder import Vectors
from memstate_core.placement.vectors import Array, Numbers, shrunken_means, unit

SAMPLE = 1000
"""Segments of a scope that are sampled."""

_PRIOR_ROWS = 10


@dataclass(frozen=True)
class Normal:
    """A normal density by its mean and standard deviation."""

    mean: float
    spread: float

    def log_density(self, values: Array) -> Array:
        """The logarithm of the density, less a constant that every normal density has."""
        logs: Array = -0.5 * ((values - self.mean) / self.spread) ** 2 - np.log(self.spread)
        return logs


PRIOR_SAME, PRIOR_OTHER = Normal(0.8, 0.1), Normal(0.4, 0.2)
"""Priors: cosines of segments of the same subject, and of different ones."""


@dataclass(frozen=True)
class Calibration:
    """The distributions of cosines in one scope.

    Attributes:
        shared: the mean of its segments (d), subtracted from vectors before they are compared.
        same: cosines of segments of the same subject.
        other: cosines of segments of different sessions.
    """

    shared: Array
    same: Normal
    other: Normal

    def centred(self, vectors: Vectors) -> Vectors:
        """Unit vectors after the scope's mean was subtracted."""
        return unit(vectors - self.shared)

    def probability(self, cosines: Array, candidates: int) -> Array:
        """The probability that pairs of segments share a subject.

        Args:
            cosines: of centred vectors.
            candidates: number of segments and topics compared. The number of subjects is taken to grow with its
                square root (Heaps' law), so the prior odds of a shared subject are one to that root.

        The probability is monotonic in the cosine, since cosines are clipped to the range between the two means where
        the densities would reverse it.
        """
        low, high = self.other.mean, self.same.mean
        ratio = self.same.log_density(np.clip(cosines, low, high)) - self.other.log_density(np.maximum(cosines, low))
        logit = (ratio if high > low else 0.0 * ratio) - 0.5 * np.log(max(candidates, 1))
        probability: Array = 1.0 / (1.0 + np.exp(-logit))
        return probability


def calibrated(whole: Vectors, halves: tuple[Vectors, Vectors], sessions: Numbers) -> Calibration:
    """Calibrates a scope on its segments.

    Args:
        whole: a unit vector for each segment (n x d).
        halves: unit vectors of the first and of the second half of its turns; zeros where a half is too short.
        sessions: the number of each segment's session.
    """
    rows = np.linspace(0, len(whole) - 1, min(len(whole), SAMPLE)).astype(np.int64)
    shared = shrunken_means(whole, np.zeros(len(whole), dtype=np.int64))[0] if len(whole) else np.zeros(whole.shape[1])
    first, second = (half[rows] for half in halves)
    long = (np.abs(first).sum(axis=1) > 0) & (np.abs(second).sum(axis=1) > 0)
    half = (unit(first[long] - shared) * unit(second[long] - shared)).sum(axis=1).astype(np.float64).clip(0.0, 1.0)
    centred = unit(whole[rows] - shared)
    apart = sessions[rows][:, None] != sessions[rows][None, :]
    others = (centred @ centred.T)[apart].astype(np.float64)
    return Calibration(shared, _shrunk(2 * half / (1 + half), PRIOR_SAME), _shrunk(others, PRIOR_OTHER))


def _shrunk(values: Array, prior: Normal) -> Normal:
    """The mean and spread of values, shrunk towards a prior with the weight of `_PRIOR_ROWS` values."""
    weight = len(values) / (len(values) + _PRIOR_ROWS)
    mean = weight * float(values.mean() if len(values) else 0.0) + (1 - weight) * prior.mean
    own = float(values.var()) if len(values) else 0.0
    return Normal(mean, float(np.sqrt(weight * own + (1 - weight) * prior.spread**2)))
