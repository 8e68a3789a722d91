"""Bulk work on arrays: weighting, nearest rows, products of chosen pairs of rows, sets and ranks of numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memstate_core.model.progress import tracked
from memstate_core.state.parallel import cores, in_threads

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]

_PAIR_BLOCK, _DENSE_PAIRS = 20_000, 1_000
"""Pairs of rows that are multiplied at once; both sides are copied, and so few dense ones stay in the CPU's cache."""
_FEW_PAIRS = 100_000
"""Pairs up to which starting threads takes longer than they save."""
_ROW_CELLS = 20_000_000
"""Cells of a dense block of similarities: 80 MB of float32."""
LARGE = 10_000
"""The most members whose products are all computed; of more, neighbours are searched roughly first."""
WIDER = 3
"""How many times as many neighbours the rough search of sparse rows proposes."""
SMALL = 2_000
"""Sparse rows up to which starting threads takes longer than they save."""
FREQUENT = 0.02
"""The rough search leaves out columns that more than this share of the members have: they discriminate least."""
_WIDE_ROWS, _STRIDED = 512, 64
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
    out = np.empty(len(a), np.float32)

    def multiply(start: int) -> None:
        some, others = a[start : start + _PAIR_BLOCK], b[start : start + _PAIR_BLOCK]
        out[start : start + _PAIR_BLOCK] = _products(left, right, some, others)

    in_threads(multiply, range(0, len(a), _PAIR_BLOCK), threads=cores() if len(a) > _FEW_PAIRS else 1)
    return out


def _products(left: Any, right: Any, a: Ints, b: Ints) -> Floats:
    """The same of one block of pairs."""
    if not isinstance(left, np.ndarray):
        return np.asarray(left[a].multiply(right[b]).sum(axis=1)).ravel()
    parts = [slice(start, start + _DENSE_PAIRS) for start in range(0, len(a), _DENSE_PAIRS)]
    return np.concatenate([np.einsum("ij,ij->i", left[a[part]], right[b[part]]) for part in parts])


def nearest(matrix: Any, members: Ints, k: int) -> tuple[Ints, Ints]:
    """The k most similar other members of each member, as pairs with a < b (each may come twice).

    Exact up to LARGE members. Beyond, a rough search proposes more than k, and their exact products choose:
    for dense rows that finds the same but for ties of the last places, for sparse rows it misses neighbours
    that share frequent columns only.

    Args:
        matrix: rows of unit length, dense or CSR.
        members: the rows that are compared with each other.
        k: how many of each; fewer where fewer have any similarity.
    """
    part = matrix[members]
    if len(members) <= LARGE:
        rows, others = _exact(part, k)
    else:
        proposed = _rough_dense(part, k) if isinstance(part, np.ndarray) else _rough_sparse(part, k)
        rows, others = _best(part, *proposed, k)
    return members[np.minimum(rows, others)], members[np.maximum(rows, others)]


def _exact(part: Any, k: int) -> tuple[Ints, Ints]:
    """The k most similar others of each row, by full products (row, other)."""
    k = min(k, part.shape[0] - 1)
    if k < 1:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    return _exact_dense(part, k) if isinstance(part, np.ndarray) else _exact_sparse(part, k)


def _exact_dense(part: Floats, k: int) -> tuple[Ints, Ints]:
    step, found = max(1, _ROW_CELLS // len(part)), []
    for start in _blocks(len(part), step):
        block = part[start : start + step] @ part.T
        rows = np.arange(len(block))
        block[rows, rows + start] = -1.0
        best = np.argpartition(-block, k - 1, axis=1)[:, :k]
        kept = np.take_along_axis(block, best, axis=1) > 0
        found.append((np.repeat(rows + start, k).reshape(-1, k)[kept], best[kept]))
    return np.concatenate([row for row, _ in found]), np.concatenate([other for _, other in found])


def _exact_sparse(part: Any, k: int) -> tuple[Ints, Ints]:
    """One more than k, since a row is the most similar to itself; unless as many others are the same."""
    rows, others = _most_similar(part, k + 1)
    rows, others = rows[rows != others], others[rows != others]
    kept = np.arange(len(rows)) - np.searchsorted(rows, rows) < k
    return rows[kept], others[kept]


def _most_similar(part: Any, k: int) -> tuple[Ints, Ints]:
    """The k rows most similar to each row, itself included, by the rows' order (row, other)."""
    from sparse_dot_topn import sp_matmul_topn

    count = part.shape[0]
    top = sp_matmul_topn(part, part.T.tocsr(), top_n=k, n_threads=cores() if count > SMALL else 1)
    return np.repeat(np.arange(count), np.diff(top.indptr)), top.indices[: top.indptr[-1]].astype(np.int64)


def _blocks(count: int, step: int) -> Iterable[int]:
    """Where blocks of rows start; the progress of a search of several blocks is reported."""
    starts = range(0, count, step)
    return tracked(starts, "find neighbours", count, "topics", lambda _start: step) if len(starts) > 1 else starts


def bfloat16_is_fast() -> bool:
    """Whether products in bfloat16 are fast here: oneDNN has kernels for them from AVX-512 on; others emulate them."""
    import torch

    return torch.backends.cpu.get_cpu_capability().startswith("AVX512")


def _rough_dense(part: Floats, k: int) -> tuple[Ints, Ints]:
    """Twice k of each row's most similar, by products in bfloat16 where the CPU has them.

    The best k of a row lie in the k strided groups with the highest maxima, so only those are sorted. Products are
    ordered by their bits as integers, which are compared faster: above zero that is the order of the numbers.
    """
    import torch

    count, k = len(part), 2 * k
    dtype, bits = (torch.bfloat16, torch.int16) if bfloat16_is_fast() else (torch.float32, torch.int32)
    every = torch.zeros((-(-count // _STRIDED) * _STRIDED, part.shape[1]), dtype=dtype)
    every[:count] = torch.from_numpy(part)
    groups = len(every) // _STRIDED
    offsets, found = torch.arange(_STRIDED) * groups, []
    products = torch.empty((min(count, _WIDE_ROWS), len(every)), dtype=dtype)
    for start in _blocks(count, _WIDE_ROWS):
        some = every[start : min(count, start + _WIDE_ROWS)]
        block = torch.mm(some, every.T, out=products[: len(some)]).view(bits).view(-1, _STRIDED, groups)
        top = block.amax(dim=1).topk(min(k, groups), dim=1, sorted=False).indices
        cells = block.gather(2, top[:, None, :].expand(-1, _STRIDED, -1)).flatten(1)
        best = cells.topk(min(k, cells.shape[1]), dim=1, sorted=False).indices
        width = top.shape[1]
        found.append((offsets[best // width] + top.gather(1, best % width)).numpy())
    others = np.concatenate(found)
    rows = np.repeat(np.arange(count), others.shape[1])
    kept = others.ravel() < count
    return rows[kept], others.ravel()[kept]


def _rough_sparse(part: Any, k: int) -> tuple[Ints, Ints]:
    """Some WIDER * k of each row's most similar, by the columns that at most FREQUENT of the rows have."""
    frequent = np.bincount(part.indices, minlength=part.shape[1]) > FREQUENT * part.shape[0]
    return _most_similar(part[:, np.flatnonzero(~frequent)], WIDER * k)


def _best(part: Any, rows: Ints, others: Ints, k: int) -> tuple[Ints, Ints]:
    """Of what was proposed for each row, in their order, the k others that are the most similar."""
    rows, others = rows[rows != others], others[rows != others]
    product = pair_products(part, part, rows, others)
    order = np.lexsort((-product, rows))
    order = order[product[order] > 0]
    rows, others = rows[order], others[order]
    kept = np.arange(len(rows)) - np.searchsorted(rows, rows) < k
    return rows[kept], others[kept]
