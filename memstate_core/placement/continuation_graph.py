"""Which segments of one scope continue which, by their rows; `memstate_core.placement.continuation` names them.

Each segment is linked to the earlier one, or the topic, that is most like it, when they are probably of one subject;
following the links leads to what began the topic. Against chains that wander off, a segment must be as probably of
one subject with that first one, else it begins a topic itself.

Memory stays bounded: cosines are made for a block of segments at a time.
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
"""Cosines that are held at a time."""

Bools = npt.NDArray[np.bool_]
NONE: Numbers = np.zeros(0, dtype=np.int64)
"""No rows."""


class Pairs(NamedTuple):
    """Rows of segments with those of what they continue, the cosine and the probability."""

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
    """What one scope compares: its topics first, then its new segments in the order of time.

    Attributes:
        topics: how many topics there are.
        may: which may be continued, and continue something.
        plain: the unit vectors.
        centred: the same, less what the scope has in common.
        calibration: what cosines mean here.
    """

    topics: int
    may: Bools
    plain: Vectors
    centred: Vectors
    calibration: Calibration

    def continued(self, policy: Policy) -> Pairs:
        """Segments with the topics that they continue."""
        parents = np.arange(len(self.may))
        best = self._nearest()
        rows = np.flatnonzero((best >= 0) & self.may)
        linked = rows[self._same(rows, best[rows], policy)]
        parents[linked] = best[linked]
        roots = self._roots(parents, policy)
        found = np.flatnonzero(roots != np.arange(len(roots)))
        return Pairs(found, roots[found], *self._likeness(found, roots[found]))

    def _nearest(self) -> Numbers:
        """For each segment the earlier one, or the topic, that is most like it; -1 for topics and where none is."""
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
        """What each link leads to in the end; a link whose end is not of the same subject is cut."""
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
        """Whether pairs are probably of one subject."""
        _, probability = self._likeness(rows, others)
        plain = np.einsum("ij,ij->i", self.plain[rows], self.plain[others])
        alike: Bools = np.logical_and(probability >= policy.placement_probability, plain >= policy.placement_similarity)
        return alike

    def _likeness(self, rows: Numbers, others: Numbers) -> tuple[Array, Array]:
        """Centred cosine and probability of pairs."""
        cosines = np.einsum("ij,ij->i", self.centred[rows], self.centred[others]).astype(np.float64)
        return cosines, self.calibration.probability(cosines, len(self.may) - 1)
