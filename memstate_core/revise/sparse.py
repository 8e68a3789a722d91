"""Bulk work on sparse matrices: weighting, nearest rows, products of chosen pairs of rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]

_PAIR_BLOCK = 200_000
_ROW_CELLS = 20_000_000
"""Cells of a dense block of similarities: 80 MB of float32."""


def tfidf(texts: Sequence[str], analyzer: Callable[[str], list[str]]) -> Any:
    """Texts as rows of a CSR matrix of unit length, sublinear TF times IDF (Salton and Buckley, 1988).

    A corpus without a single term gives a matrix of one empty column.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer  # slow to load, and only nights need it

    try:
        return TfidfVectorizer(analyzer=analyzer, sublinear_tf=True, dtype=np.float32).fit_transform(texts).tocsr()
    except ValueError:  # scikit-learn's word for an empty vocabulary
        from scipy.sparse import csr_matrix

        return csr_matrix((len(texts), 1), dtype=np.float32)


def pair_products(left: Any, right: Any, a: Ints, b: Ints) -> Floats:
    """Inner products of row a[i] of one matrix with row b[i] of another; dense or sparse, float32 (pairs,)."""
    out = np.empty(len(a), np.float32)
    for start in range(0, len(a), _PAIR_BLOCK):
        stop = start + _PAIR_BLOCK
        rows, others = left[a[start:stop]], right[b[start:stop]]
        if isinstance(rows, np.ndarray):
            out[start:stop] = np.einsum("ij,ij->i", rows, others)
        else:
            out[start:stop] = np.asarray(rows.multiply(others).sum(axis=1)).ravel()
    return out


def nearest(matrix: Any, members: Ints, k: int) -> tuple[Ints, Ints]:
    """The k most similar other members of each member, as pairs with a < b (each may come twice).

    Args:
        matrix: rows of unit length, dense or CSR.
        members: the rows that are compared with each other.
        k: how many of each; fewer where fewer have any similarity.
    """
    part = matrix[members]
    transposed, count = part.T if isinstance(part, np.ndarray) else part.T.tocsr(), len(members)
    k, step = min(k, count - 1), max(1, _ROW_CELLS // max(1, count))
    found: list[tuple[Ints, Ints]] = []
    for start in range(0, count if k > 0 else 0, step):
        product = part[start : start + step] @ transposed
        block = product if isinstance(product, np.ndarray) else product.toarray()
        rows = np.arange(block.shape[0])
        block[rows, rows + start] = -1.0
        best = np.argpartition(-block, k - 1, axis=1)[:, :k]
        kept = np.take_along_axis(block, best, axis=1) > 0
        ones, others = np.repeat(rows + start, k).reshape(-1, k)[kept], best[kept]
        found.append((members[np.minimum(ones, others)], members[np.maximum(ones, others)]))
    if not found:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    return np.concatenate([one for one, _ in found]), np.concatenate([other for _, other in found])
