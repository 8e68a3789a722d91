"""How probable it is that two segments of a scope are about the same subject, given their cosine.

Learnt from the scope itself, with no label: what two halves of one segment have in common shows what sameness looks
like there, what segments of different sessions have in common shows the rest. The half of a segment says less than
the whole, which the formula of Spearman and Brown (1910) makes up for. Both are taken as normal; Bayes' rule gives
the probability. Where there are few values to learn from, they are drawn towards usual ones.

Cosines are those of vectors less what all segments of the scope have in common (who talks, and how), without which
any two chats of the same people look alike.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from memstate_core.embed.encoder import Vectors
from memstate_core.placement.vectors import Array, Numbers, common, unit

SAMPLE = 1000
"""Segments of a scope that are looked at."""

_USUAL_ROWS = 10


@dataclass(frozen=True)
class Normal:
    """A normal density by its mean and standard deviation."""

    mean: float
    spread: float

    def log_density(self, values: Array) -> Array:
        """The logarithm of the density, less a constant that every normal density has."""
        logs: Array = -0.5 * ((values - self.mean) / self.spread) ** 2 - np.log(self.spread)
        return logs


USUAL_SAME, USUAL_OTHER = Normal(0.8, 0.1), Normal(0.4, 0.2)
"""Cosines of segments of one subject and of different ones, where a scope does not know its own."""


@dataclass(frozen=True)
class Calibration:
    """What a scope knows of cosines.

    Attributes:
        shared: what its segments have in common (384), taken from vectors before they are compared.
        same: cosines of segments of the same subject.
        other: cosines of segments of different sessions.
    """

    shared: Array
    same: Normal
    other: Normal

    def centred(self, vectors: Vectors) -> Vectors:
        """Unit vectors without what the scope has in common."""
        return unit(vectors - self.shared)

    def probability(self, cosines: Array, candidates: int) -> Array:
        """The probability that pairs of segments are about the same subject.

        Args:
            cosines: of centred vectors.
            candidates: how many segments and topics are compared. Subjects are taken to grow with the square root
                of their number, as words do with a text (Heaps' law), so a priori two of them are of one subject with
                odds of one to that root.

        It never falls as the cosine rises: segments that are more alike than those of one subject usually are count
        as these do, those that are less alike than others usually are count as those.
        """
        low, high = self.other.mean, self.same.mean
        told = self.same.log_density(np.clip(cosines, low, high)) - self.other.log_density(np.maximum(cosines, low))
        logit = (told if high > low else 0.0 * told) - 0.5 * np.log(max(candidates, 1))
        probability: Array = 1.0 / (1.0 + np.exp(-logit))
        return probability


def calibrated(whole: Vectors, halves: tuple[Vectors, Vectors], sessions: Numbers) -> Calibration:
    """What a scope's segments tell.

    Args:
        whole: a unit vector for each segment (n x 384).
        halves: of the first and of the second half of its turns; zeros where a half is too short to tell.
        sessions: a number for the session of each.
    """
    rows = np.linspace(0, len(whole) - 1, min(len(whole), SAMPLE)).astype(np.int64)
    shared = common(whole, np.zeros(len(whole), dtype=np.int64))[0] if len(whole) else np.zeros(whole.shape[1])
    first, second = (half[rows] for half in halves)
    told = (np.abs(first).sum(axis=1) > 0) & (np.abs(second).sum(axis=1) > 0)
    half = (unit(first[told] - shared) * unit(second[told] - shared)).sum(axis=1).astype(np.float64).clip(0.0, 1.0)
    centred = unit(whole[rows] - shared)
    apart = sessions[rows][:, None] != sessions[rows][None, :]
    others = (centred @ centred.T)[apart].astype(np.float64)
    return Calibration(shared, _drawn(2 * half / (1 + half), USUAL_SAME), _drawn(others, USUAL_OTHER))


def _drawn(values: Array, usual: Normal) -> Normal:
    """The mean and spread of values, drawn towards usual ones with the weight of `_USUAL_ROWS` values."""
    weight = len(values) / (len(values) + _USUAL_ROWS)
    mean = weight * float(values.mean() if len(values) else 0.0) + (1 - weight) * usual.mean
    own = float(values.var()) if len(values) else 0.0
    return Normal(mean, float(np.sqrt(weight * own + (1 - weight) * usual.spread**2)))
