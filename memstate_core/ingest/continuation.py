"""Which topic a stretch continues, if any: one that existed, or an earlier stretch of the same import.

Stretches are taken in the order of time, so that years of chats imported at once give such topics as nightly imports
would. Each is linked to the earlier one that is most like it, when they are probably of one subject
(`memstate_core.ingest.calibration`); following the links leads to the stretch that began the topic. Against chains
that wander off, a stretch must be as probably of one subject with that first one, else it begins a topic itself.

Scopes are never compared with each other. Memory stays bounded: cosines are made for a block of stretches at a time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from memstate_core.embed.encoder import Vectors
from memstate_core.ingest.calibration import Calibration, calibrated
from memstate_core.ingest.heard import Stretches
from memstate_core.ingest.similarity import Embeddings
from memstate_core.ingest.vectors import Array, Numbers
from memstate_core.model.frames import Schema
from memstate_core.policy.settings import Policy

_CELLS = 16_000_000
"""Cosines that are held at a time."""

FOUND: Schema = {"id": pl.String, "topic_id": pl.String, "score": pl.Float64, "probability": pl.Float64}


def continued(new: Stretches, existing: Embeddings, recorded: Stretches, policy: Policy) -> pl.DataFrame:
    """The topic that each new stretch continues.

    Args:
        new: stretches that have no topic yet.
        existing: the topics that may be continued.
        recorded: stretches of earlier runs, from which the scope knows what sameness looks like.
        policy: `placement_probability`, and `placement_similarity` as the least plain cosine.

    Returns:
        Columns FOUND: the new stretch's id, the topic's (for an earlier new stretch, that one's id), the centred
        cosine with it, the probability; only stretches that continue something.
    """
    found = [pl.DataFrame(schema=FOUND)]
    topics, known = _rows(existing.scopes), _rows(recorded.frame["scope"])
    for scope, rows in _rows(new.frame["scope"]).items():
        compared = _Scope.of(new, rows, existing, topics.get(scope, _NONE), recorded, known.get(scope, _NONE))
        found.append(compared.continued(policy))
    return pl.concat(found)


_NONE: Numbers = np.zeros(0, dtype=np.int64)


def _rows(scopes: pl.Series) -> dict[str, Numbers]:
    """The rows of each scope, in order."""
    grouped = scopes.to_frame("scope").with_row_index("row").group_by("scope", maintain_order=True).agg("row")
    return {scope: np.asarray(rows, dtype=np.int64) for scope, rows in grouped.iter_rows()}


@dataclass(frozen=True)
class _Scope:
    """What one scope compares: its topics first, then its new stretches in the order of time.

    Attributes:
        ids: of topics and stretches.
        topics: how many of them are topics.
        may: which may be continued, and continue something.
        plain: their unit vectors.
        centred: the same, less what the scope has in common.
        calibration: what cosines mean here.
    """

    ids: pl.Series
    topics: int
    may: npt.NDArray[np.bool_]
    plain: Vectors
    centred: Vectors
    calibration: Calibration

    @classmethod
    def of(
        cls, new: Stretches, rows: Numbers, existing: Embeddings, topics: Numbers, recorded: Stretches, known: Numbers
    ) -> _Scope:
        parts = ((recorded, known), (new, rows))
        first, second = (np.concatenate([part.halves[side][own] for part, own in parts]) for side in (0, 1))
        whole = np.concatenate([part.whole[own] for part, own in parts])
        sessions = pl.concat([part.frame["session"].gather(own) for part, own in parts]).rank("dense").to_numpy()
        calibration = calibrated(whole, (first, second), sessions.astype(np.int64))
        plain = np.concatenate([existing.vectors[topics], new.whole[rows]])
        may = np.concatenate([np.ones(len(topics), bool), new.frame["tells"].gather(rows).to_numpy()])
        ids = pl.concat([existing.ids.gather(topics), new.frame["id"].gather(rows)])
        return cls(ids, len(topics), may, plain, calibration.centred(plain), calibration)

    def continued(self, policy: Policy) -> pl.DataFrame:
        """Stretches with the topics that they continue (columns FOUND)."""
        parents = np.arange(len(self.ids))
        best = self._nearest()
        rows = np.flatnonzero((best >= 0) & self.may)
        linked = rows[self._same(rows, best[rows], policy)]
        parents[linked] = best[linked]
        roots = self._roots(parents, policy)
        found = np.flatnonzero(roots != np.arange(len(roots)))
        score, probability = self._likeness(found, roots[found])
        return pl.DataFrame(
            {
                "id": self.ids.gather(found),
                "topic_id": self.ids.gather(roots[found]),
                "score": score.round(6),
                "probability": probability.round(6),
            },
            schema=FOUND,
        )

    def _nearest(self) -> Numbers:
        """For each stretch the earlier one, or the topic, that is most like it; -1 for topics and where none is."""
        total = len(self.ids)
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

    def _same(self, rows: Numbers, others: Numbers, policy: Policy) -> npt.NDArray[np.bool_]:
        """Whether pairs are probably of one subject."""
        _, probability = self._likeness(rows, others)
        plain = np.einsum("ij,ij->i", self.plain[rows], self.plain[others])
        alike: npt.NDArray[np.bool_] = np.logical_and(
            probability >= policy.placement_probability, plain >= policy.placement_similarity
        )
        return alike

    def _likeness(self, rows: Numbers, others: Numbers) -> tuple[Array, Array]:
        """Centred cosine and probability of pairs."""
        cosines = np.einsum("ij,ij->i", self.centred[rows], self.centred[others]).astype(np.float64)
        return cosines, self.calibration.probability(cosines, len(self.ids) - 1)
