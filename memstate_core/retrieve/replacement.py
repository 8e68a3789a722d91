"""How likely a later turn replaced an earlier one, judged by their form: nothing of either is understood.

A logistic regression over pairs of the first turns for a question. It was fitted on half of the facts of
`tests/benchmarks/updates.py` by `tests/benchmarks/fit_replacement.py`. Only what the same speaker said later, in
another session, can replace a turn: what follows in the same session goes on about the same. A turn that only asks
replaces nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from memstate_core.embed.encoder import Vectors
from memstate_core.retrieve.index.windows import MISSING
from memstate_core.retrieve.scope_data import EvidenceSlice, Flags, Rows
from memstate_core.retrieve.scoring import highest
from memstate_core.retrieve.standard_scores import Array

POOL = 50
"""How many of the first rows are compared with each other."""

PLACES = 5
"""How many of the first places are exchanged."""

FURTHER = 20
"""How many rows from below the pool are compared, too."""

RARE = 0.6
"""The least weight of shared words, as a share of that of a word that one turn only contains."""

FEW = 10
"""How many further turns a rank is worth among none that were compared."""

SMALL = 20
"""In a pool of fewer rows ranks say nothing: only a turn that is near, with a word of change, replaces another."""

NEAR = 0.3
"""The least cosine of turns that are near, where ranks say nothing."""

TRAITS = {
    "shares a rare word": 0.92,
    "names a change": 2.41,
    "names a change: weight of shared words": 0.73,
    "rank among earlier turns": -1.04,
    "rank among later turns": -1.03,
    "score below the best": -2.17,
    "place of the earlier turn": -2.44,
}
"""The coefficient of each trait of a pair. Weights, ranks (by cosine), places and differences of scores count as
log(1 + x)."""

INTERCEPT = 2.00


@dataclass(frozen=True)
class Pool:
    """The first rows for a question.

    Attributes:
        rows: the rows, best first (n).
        scores: their scores (n).
        at: when each was said (n).
        probability: that each later one (column) replaced one of the first (row); 0 for other pairs (m x n).
    """

    rows: Rows
    scores: Array
    at: Array
    probability: Array


def pool_of(evidence: EvidenceSlice, scores: Array, seen: Flags, stating: Flags, first: int) -> Pool:
    """The first rows, and how likely each of a few was replaced.

    Args:
        evidence: the evidence of a scope (n rows).
        scores: the score of each row (n).
        seen: which rows may be returned (n).
        stating: which rows state values of fields: of two of them, the histories know (n).
        first: for how many of the first rows that is wanted (m).
    """
    rows = pool_rows(evidence, scores, seen)
    known, later = traits(evidence, scores[rows], rows, min(first, POOL))
    later &= ~(stating[rows[: len(later)], None] & stating[rows][None, :])
    odds = np.exp(INTERCEPT + known @ np.array(list(TRAITS.values())))
    return Pool(rows, scores[rows], evidence.moments[rows], np.where(later, odds / (1 + odds), 0.0))


def pool_rows(evidence: EvidenceSlice, scores: Array, seen: Flags) -> Rows:
    """The first rows, and further ones with a word of change that share a rare word with the first of them."""
    first = _highest(scores, np.flatnonzero(seen), POOL)
    naming = [_naming(evidence, row) for row in first[:PLACES].tolist()]
    further = np.setdiff1d(np.concatenate(naming), first) if naming else first
    return np.append(first, _highest(scores, further[seen[further]], FURTHER))


def _naming(evidence: EvidenceSlice, row: int) -> Rows:
    """The rows with a word of change that share a rare word with a row, or whose window does."""
    known = evidence.contradicting.get(row)
    if known is None:
        rows = evidence.terms.rows(evidence.shared_words.of(row, _rare(evidence)))
        known = evidence.contradicting[row] = rows[evidence.changes[rows]]
    return known


def _highest(scores: Array, rows: Rows, count: int) -> Rows:
    rows = highest(scores, rows, count)
    first: Rows = rows[np.argsort(-scores[rows], kind="stable")[:count]]
    return first


def _rare(evidence: EvidenceSlice) -> float:
    """The least weight of shared words that says something."""
    return RARE * _singular(evidence)


def _singular(evidence: EvidenceSlice) -> float:
    """The weight of a word that one turn only contains."""
    return float(np.log1p((evidence.frame.height - 0.5) / 1.5))


def traits(evidence: EvidenceSlice, scores: Array, rows: Rows, first: int) -> tuple[Array, Flags]:
    """The traits of pairs of rows, and which pairs count.

    Args:
        evidence: the evidence.
        scores: the scores of the rows, that of the best first (n).
        rows: the rows (n).
        first: how many of them may have been replaced (m).

    Returns:
        The traits (m x n x 7), in the order of `TRAITS`, and whether the column can have replaced the row (m x n).
    """
    cosines, early = _following(evidence, rows), rows[:first]
    near, pairs = cosines[:first], cosines > -1
    among, changes = pairs.sum(axis=0), evidence.changes[rows]
    shared = evidence.shared_words.between(early, rows)
    found = [
        shared >= _rare(evidence),
        np.broadcast_to(changes, near.shape),
        changes * np.log1p(np.maximum(shared, 0) / _singular(evidence)),
        _rank((cosines[None, :, :] > near[:, None, :]).sum(axis=1), among[None, :]),
        _rank((near[:, None, :] > near[:, :, None]).sum(axis=2), pairs[:first].sum(axis=1)[:, None]),
        np.broadcast_to(np.log1p(scores[:1] - scores), near.shape),
        np.broadcast_to(np.log1p(np.arange(len(early)))[:, None], near.shape),
    ]
    counted = pairs[:first] & ((near >= NEAR) & changes | (len(rows) >= SMALL))
    return np.stack(found, axis=-1).astype(np.float64), counted


def _rank(before: npt.NDArray[np.intp], among: npt.NDArray[np.intp]) -> Array:
    """The logarithm of a rank from the number of those before it; to be first among few is to be somewhere."""
    rank: Array = np.log1p(before + FEW / (1 + among))
    return rank


def _following(evidence: EvidenceSlice, rows: Rows) -> Vectors:
    """The cosine of each row with each one that says something later, by the same speaker; -1 elsewhere (n x n).

    What follows in the same session goes on about the same, and seldom says that it is no longer so.
    """
    vectors, at, sessions, speakers = (
        _vectors(evidence, rows),
        evidence.moments[rows],
        evidence.windows[rows, 2],
        evidence.speakers[rows],
    )
    cosines = np.nan_to_num(np.matmul(vectors[None, :, :], vectors[:, :, None])[:, :, 0].T, nan=-1.0)
    pairs = (at[None, :] > at[:, None]) & (sessions[:, None] != sessions[None, :])
    pairs &= (speakers[:, None] == speakers[None, :]) & (evidence.asking[rows] < 1)[None, :]
    found: Vectors = np.where(pairs, cosines, -1.0)
    return found


def _vectors(evidence: EvidenceSlice, rows: Rows) -> Vectors:
    """The unit vectors of rows; NaN where one has none."""
    places = evidence.vector_rows[rows]
    vectors = np.full((len(rows), evidence.vectors.shape[1]), np.nan, dtype=np.float32)
    vectors[places != MISSING] = evidence.vectors[places[places != MISSING]]
    return vectors
