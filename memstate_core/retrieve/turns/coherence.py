"""Whether neighbouring turns of a chat are about the same: how much what surrounds a turn says about it.

In a conversation an answer follows its question, so the neighbours of a turn help to find it. In notes that happen to
share a session they say nothing, and would lend their scores to whatever stands beside them. The chat itself shows
which it is: the mean product of the vectors of neighbours, less that of any two turns by the same speakers, so that
"I see" after everything counts for nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from memstate_core.embed.encoder import Vectors
from memstate_core.retrieve.index.windows import MISSING

Rows = npt.NDArray[np.signedinteger[Any]]

COHERENT = 0.1
"""The covariance of neighbours from which on context counts in full: conversations have 0.15 to 0.26, lists of
notes 0."""

_PRIOR_PAIRS = 20
"""A chat of a few turns counts as coherent."""

_MOST_PAIRS = 4096


def context_weight(vectors: Vectors, rows: Rows, followers: Rows, speakers: Rows) -> float:
    """How much the context of a turn counts, 0 to 1.

    Args:
        vectors: unit vectors (m x d).
        rows: the row in `vectors` of each turn, `MISSING` without one (n).
        followers: the turn after each, `MISSING` without one (n).
        speakers: the number of the speaker of each turn (n).
    """
    first = np.flatnonzero((rows != MISSING) & (followers != MISSING) & (rows[followers] != MISSING))
    first = first[:: 1 + len(first) // _MOST_PAIRS]
    then = followers[first]
    products = np.einsum("id,id->i", vectors[rows[first]], vectors[rows[then]])
    usual = _usual_products(vectors, rows, speakers, first, then)
    covariance = (float((products - usual).sum()) + _PRIOR_PAIRS * COHERENT) / (len(first) + _PRIOR_PAIRS)
    return float(np.clip(covariance / COHERENT, 0.0, 1.0))


def _usual_products(vectors: Vectors, rows: Rows, speakers: Rows, first: Rows, then: Rows) -> Vectors:
    """The mean product of two distinct turns by the speakers of each pair, neighbours or not (m)."""
    turns = np.unique(np.concatenate([first, then]))
    numbers, which = np.unique(speakers[turns], return_inverse=True)
    sums = np.zeros((len(numbers), vectors.shape[1]), dtype=vectors.dtype)
    np.add.at(sums, which, vectors[rows[turns]])
    counts = np.bincount(which, minlength=len(numbers)).astype(vectors.dtype)
    one, other = np.searchsorted(numbers, speakers[first]), np.searchsorted(numbers, speakers[then])
    itself = np.where(one == other, counts[one], 0.0)  # the product of a unit vector with itself is 1
    usual: Vectors = np.einsum("id,id->i", sums[one], sums[other]) - itself
    return usual / (counts[one] * counts[other] - itself)
