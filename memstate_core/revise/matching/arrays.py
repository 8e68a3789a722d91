"""Bulk work on arrays: weighting, products of chosen pairs of rows, sets and ranks of numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memstate_core.state.process.parallel import cores, in_threads

Ints = NDArray[np.int64]
Codes = NDArray[np.int8]
Floats = NDArray[np.float32]

_PAIR_BLOCK, _DENSE_PAIRS = 20_000, 1_000
"""Pairs of rows that are multiplied at once; both sides are copied, and so few dense ones stay in the CPU's cache."""
_FEW_PAIRS = 100_000
"""Pairs up to which starting threads takes longer than they save."""
_COUNTED = 16
"""Cells of a count for each number, up to which counting takes less time than sorting."""


def tfidf(texts: Sequence[str], analyzer: Callable[[str], list[str]]) -> Any:
    """Texts as rows of a CSR matrix of unit length, sublinear TF times IDF (Salton and Buckley, 1988).

    A corpus without a single term gives a matrix of one empty column.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer  # slow to load, and only nights need it

    try:
        return TfidfVectorizer(analyzer=analyzer, sublinear_tf=True, dtype=np.float32).fit_transform(texts).tocsr()
    except ValueError:  # raised for an empty vocabulary
        from scipy.sparse import csr_matrix

        return csr_matrix((len(texts), 1), dtype=np.float32)


def incidence(rows: Sequence[Sequence[str]], column: Mapping[str, int]) -> Any:
    """Rows of distinct names as a matrix of ones, CSR (rows, names).

    Args:
        rows: the names of each row.
        column: the column of each name.
    """
    from scipy.sparse import csr_matrix

    starts = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    places = np.fromiter((column[name] for row in rows for name in row), dtype=np.int64, count=int(starts[-1]))
    return csr_matrix((np.ones(len(places), np.float32), places, starts), shape=(len(rows), len(column)))


def named_incidence(rows: Sequence[Sequence[str]]) -> tuple[Any, list[str]]:
    """Rows of distinct names as a matrix of ones, CSR (rows, names), and the names: those of all rows, sorted.

    Rows without a single name give one empty column, whose name is empty.
    """
    names = sorted(set(chain.from_iterable(rows))) or [""]
    return incidence(rows, {name: place for place, name in enumerate(names)}), names


def ones(rows: Ints, columns: Ints, shape: tuple[int, int]) -> Any:
    """A CSR matrix of ones at some places, each named once or several times."""
    from scipy.sparse import csr_matrix

    matrix = csr_matrix((np.ones(len(rows), np.float32), (rows, columns)), shape=shape)
    matrix.data[:] = 1
    return matrix


def weighted(matrix: Any, weights: NDArray[Any]) -> Any:
    """A CSR matrix with each column multiplied by its weight; columns of weight 0 have no entries left."""
    product = matrix.multiply(weights[None, :]).tocsr()
    product.eliminate_zeros()
    return product


def codes_of(texts: Sequence[str]) -> Ints:
    """Equal numbers from 0 on for equal texts, in the order of the texts (texts,)."""
    return (pl.Series(texts, dtype=pl.String).rank("dense").cast(pl.Int64) - 1).to_numpy()


def distinct(parts: Sequence[Ints]) -> Ints:
    """The distinct numbers of all parts, sorted; by one sort, which large arrays need less time for than a hash."""
    every = np.sort(np.concatenate([*parts, np.empty(0, np.int64)]))
    return np.asarray(every[np.diff(every, prepend=-1) != 0])


def without(numbers: Ints, known: Ints) -> Ints:
    """The distinct numbers that are not among others, sorted; fast where there are few numbers and many others."""
    wanted = distinct([numbers])
    place = np.minimum(np.searchsorted(wanted, known), max(0, len(wanted) - 1))
    found = np.zeros(len(wanted), bool)
    if len(wanted):
        found[place[wanted[place] == known]] = True
    return wanted[~found]


def dense_ranks(numbers: Ints, below: int) -> Ints:
    """The place of each number among the distinct ones.

    Args:
        numbers: not negative.
        below: more than the greatest; unless it is many times as much as there are numbers, they are counted
            instead of sorted.
    """
    if below > _COUNTED * len(numbers):
        return np.unique(numbers, return_inverse=True)[1].astype(np.int64)
    there = np.zeros(below, bool)
    there[numbers] = True
    return np.asarray((np.cumsum(there) - 1)[numbers])


def pair_products(left: Any, right: Any, a: Ints, b: Ints) -> Floats:
    """Inner products of row a[i] of one matrix with row b[i] of another; dense or sparse, float32 (pairs,)."""
    if isinstance(left, np.ndarray):
        return _all_products(left, right, a, b)
    filled = np.flatnonzero((np.diff(left.indptr) > 0)[a] & (np.diff(right.indptr) > 0)[b])
    if len(filled) == len(a):
        return _all_products(left, right, a, b)
    products = np.zeros(len(a), np.float32)
    products[filled] = _all_products(left, right, a[filled], b[filled])
    return products


def _all_products(left: Any, right: Any, a: Ints, b: Ints) -> Floats:
    """The same in blocks, also of empty rows."""
    parts = [slice(start, start + _PAIR_BLOCK) for start in range(0, len(a), _PAIR_BLOCK)]
    threads = cores() if len(a) > _FEW_PAIRS else 1
    products = in_threads(lambda part: _products(left, right, a[part], b[part]), parts, threads=threads)
    return np.concatenate([*products, np.empty(0, np.float32)])


def _products(left: Any, right: Any, a: Ints, b: Ints) -> Floats:
    """The same of one block of pairs."""
    if not isinstance(left, np.ndarray):
        return np.asarray(left[a].multiply(right[b]).sum(axis=1)).ravel()
    parts = [slice(start, start + _DENSE_PAIRS) for start in range(0, len(a), _DENSE_PAIRS)]
    return np.concatenate([np.einsum("ij,ij->i", left[a[part]], right[b[part]]) for part in parts])
