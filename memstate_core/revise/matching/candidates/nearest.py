"""The most similar rows of each row of a matrix: by all products up to LARGE rows, roughly first among more."""

from __future__ import annotations

from typing import Any

import numpy as np

from memstate_core.revise.matching.arrays import Floats, Ints, pair_products
from memstate_core.revise.matching.candidates.rough_search import most_similar, rough_dense, rough_sparse, row_blocks
from memstate_core.state.process.memory import return_freed
from memstate_core.state.process.parallel import cores, in_threads

_ROW_CELLS = 20_000_000
"""Cells of a dense block of similarities: 80 MB of float32."""
_ROW_BLOCK = 20_000
"""Rows whose proposed neighbours are sorted at once."""
LARGE = 10_000
"""The most members whose products are all computed; of more, neighbours are searched roughly first."""


def nearest(matrix: Any, members: Ints, k: int) -> tuple[Ints, Ints]:
    """The k most similar other members of each member, as pairs with a < b (each may come twice).

    Exact up to LARGE members. Beyond, a rough search proposes more than k, and their exact products choose:
    for dense rows that finds the same but for ties of the last places, for sparse rows it misses neighbours
    that share frequent columns only. Beyond `rough_search.VAST` it misses more of both.

    Args:
        matrix: rows of unit length, dense or CSR.
        members: the rows that are compared with each other, ascending.
        k: how many of each; fewer where fewer have any similarity.
    """
    part = matrix if len(members) == matrix.shape[0] else matrix[members]
    if len(members) <= LARGE:
        rows, others = _exact(part, k)
    else:
        proposed = rough_dense(part, k) if isinstance(part, np.ndarray) else rough_sparse(part, k)
        rows, others = _best(part, *proposed, k)
        return_freed()
    return members[np.minimum(rows, others)], members[np.maximum(rows, others)]


def _exact(part: Any, k: int) -> tuple[Ints, Ints]:
    """The k most similar others of each row, by full products (row, other)."""
    k = min(k, part.shape[0] - 1)
    if k < 1:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    return _exact_dense(part, k) if isinstance(part, np.ndarray) else _exact_sparse(part, k)


def _exact_dense(part: Floats, k: int) -> tuple[Ints, Ints]:
    step, found = max(1, _ROW_CELLS // len(part)), []
    for start in row_blocks(len(part), step):
        block = part[start : start + step] @ part.T
        rows = np.arange(len(block))
        block[rows, rows + start] = -1.0
        best = np.argpartition(-block, k - 1, axis=1)[:, :k]
        kept = np.take_along_axis(block, best, axis=1) > 0
        found.append((np.repeat(rows + start, k).reshape(-1, k)[kept], best[kept]))
    return np.concatenate([row for row, _ in found]), np.concatenate([other for _, other in found])


def _exact_sparse(part: Any, k: int) -> tuple[Ints, Ints]:
    """One more than k, since a row is the most similar to itself; unless as many others are the same."""
    rows, others = most_similar(part, k + 1)
    rows, others = rows[rows != others], others[rows != others]
    kept = np.arange(len(rows)) - np.searchsorted(rows, rows) < k
    return rows[kept], others[kept]


def _best(part: Any, rows: Ints, others: Ints, k: int) -> tuple[Ints, Ints]:
    """Of what was proposed for each row, in their order, the k others that are the most similar."""
    rows, others = rows[rows != others], others[rows != others]
    product, count = pair_products(part, part, rows, others), part.shape[0]
    starts = np.searchsorted(rows, np.arange(count + 1))
    blocks = [(start, min(count, start + _ROW_BLOCK)) for start in range(0, count, _ROW_BLOCK)]
    best = in_threads(lambda ends: _best_of(product, starts, *ends, k), blocks, threads=cores())
    places = np.concatenate([*best, np.empty(0, np.int64)])
    return rows[places], others[places]


def _best_of(product: Floats, starts: Ints, first: int, last: int, k: int) -> Ints:
    """The places of the k greatest products of each of some rows, the greatest first, of those above 0.

    Args:
        product: of rows and others (proposed,).
        starts: where the products of each row begin, and where the last ones end (rows + 1,).
        first: the first of the rows.
        last: the row after them.
        k: how many.
    """
    start, sizes = starts[first:last], np.diff(starts[first : last + 1])
    table = np.zeros((len(sizes), int(sizes.max(initial=0))), np.float32)
    row = np.repeat(np.arange(len(sizes)), sizes)
    table[row, np.arange(len(row)) - np.repeat(start - start[0], sizes)] = product[start[0] : starts[last]]
    order = np.argsort(-table, axis=1, kind="stable")[:, :k]
    return np.asarray((start[:, None] + order)[np.take_along_axis(table, order, axis=1) > 0])
