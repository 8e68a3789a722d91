"""Unit vectors of topics and texts, and arithmetic on groups of them. Nothing here encodes a text."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from memstate_core.embed.encoder import Vectors

Array = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]

_PRIOR_ROWS = 10
"""Weight of the prior, in rows of zeros, by which the mean of few rows is shrunk towards zero."""


@dataclass(frozen=True)
class Embeddings:
    """Topics or texts with their vectors, compared within a scope and never across scopes.

    Attributes:
        ids: n ids.
        scopes: the scope of each.
        vectors: unit vectors (float32, n x d).
    """

    ids: pl.Series
    scopes: pl.Series
    vectors: Vectors


def unit(rows: npt.NDArray[np.floating]) -> Vectors:
    """Rows at unit length (float32); a row of zeros stays one."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths > 0, lengths, 1.0), dtype=np.float32)


def centroids(groups: Numbers, vectors: Vectors, count: int) -> Vectors:
    """The unit centroid of each group of rows (count x d); zeros for a group without rows."""
    sums = np.zeros((count, vectors.shape[1]), dtype=np.float32)
    np.add.at(sums, groups, vectors)
    return unit(sums)


def shrunken_means(rows: Vectors, groups: Numbers) -> Array:
    """The mean of the rows of each group, shrunk towards zero where they are few."""
    count = int(groups.max()) + 1 if len(groups) else 0
    sums = np.zeros((count, rows.shape[1]))
    np.add.at(sums, groups, rows)
    shared: Array = sums / (np.bincount(groups, minlength=count) + _PRIOR_ROWS)[:, None]
    return shared
