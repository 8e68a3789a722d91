"""Which segments of one scope continue which, by row number; `memstate_core.placement.continuation` maps rows to ids.

Each segment points to the most similar earlier segment or topic, if the two probably share a subject; following the
pointers leads to the root, which began the topic. To prevent topic drift along a chain, a segment must also probably
share a subject with its root, otherwise it begins a topic itself.

Memory is bounded: cosines are computed for a block of segments at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from memstate_core.embed.encoder import Vectors
from memstate_core.placement.calibration import Calibration
from memstate_core.placement.vectors import Array, Numbers
from memstate_core.policy.settings import Policy

_CELLS = 16_000_000
"""Cosines in memory at a time."""

Bools = npt.NDArray[np.bool_]
NONE: Numbers = np.zeros(0, dtype=np.int64)
"""No rows."""


class Pairs(NamedTuple):
    """Rows of segments and of what they continue, with cosine and probability."""

    segment: Numbers
    topic: Numbers
    score: Array
    probability: Array

    def renumbered(self, numbers: Numbers) -> Pairs:
        """The same with other numbers for the rows."""
        return self._replace(segment=numbers[self.segment], topic=numbers[self.topic])


NOTHING = Pairs(NONE, NONE, np.zeros(0), np.zeros(0))


@dataclass(frozen=True)
class ContinuationGraph:
    """The topics of one scope, followed by its new segments in the order of time.

    Attributes:
        topics: number of topics.
        may: which rows may be continued or continue something.
        plain: unit vectors.
        centred: unit vectors after the scope's mean was subtracted.
        calibration: maps cosines to probabilities in this scope.
    """

    topics: int
    may: Bools
    plain: Vectors
    centred: Vectors
    calibration: Calibration

    def continued(self, policy: Policy) -> Pairs:
        """Segments that continue something, each with its root."""
        parents = np.arange(len(self.may))
        best = self._nearest()
        rows = np.flatnonzero((best >= 0) & self.may)
        linked = rows[self._same(rows, best[rows], policy)]
        parents[linked] = best[linked]
        roots = self._roots(parents, policy)
        found = np.flatnonzero(roots != np.arange(len(roots)))
        return Pairs(found, roots[found], *self._likeness(found, roots[found]))

    def _nearest(self) -> Numbers:
        """The most similar earlier row of each segment; -1 for topics, and for segments without one."""
        total = len(self.may)
        best = np.full(total, -1, dtype=np.int64)
        step = max(1, _CELLS // max(total, 1))
        for start in range(self.topics, total, step):
            stop = min(start + step, total)
            cosines = self.centred[start:stop] @ self.centred[:stop].T
            cosines[:, ~self.may[:stop]] = -np.inf
            late = np.arange(start, stop)[None, :] >= np.arange(start, stop)[:, None]
            cosines[:, start:stop][late] = -np.inf
            if stop > 1:
                top = cosines.argmax(axis=1)
                best[start:stop] = np.where(np.isfinite(cosines[np.arange(len(top)), top]), top, -1)
        return best

    def _roots(self, parents: Numbers, policy: Policy) -> Numbers:
        """The root of each row; a pointer is cut where row and root do not share a subject."""
        while True:
            roots = parents
            while not np.array_equal(roots[roots], roots):
                roots = roots[roots]
            linked = np.flatnonzero(roots != np.arange(len(roots)))
            astray = linked[~self._same(linked, roots[linked], policy)]
            if not len(astray):
                return roots
            parents = parents.copy()
            parents[astray] = astray

    def _same(self, rows: Numbers, others: Numbers, policy: Policy) -> Bools:
        """Whether pairs of rows probably share a subject."""
        _, probability = self._likeness(rows, others)
        plain = np.einsum("ij,ij->i", self.plain[rows], self.plain[others])
        alike: Bools = np.logical_and(probability >= policy.placement_probability, plain >= policy.placement_similarity)
        return alike

    def _likeness(self, rows: Numbers, others: Numbers) -> tuple[Array, Array]:
        """Centred cosine and probability of pairs."""
        cosines = np.einsum("ij,ij->i", self.centred[rows], self.centred[others]).astype(np.float64)
        return cosines, self.calibration.probability(cosines, len(self.may) - 1)
