"""A rough search for the most similar rows: more than are wanted, of which exact products choose."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from memstate_core.model.progress import tracked
from memstate_core.revise.matching.arrays import Floats, Ints
from memstate_core.revise.matching.candidates.best_columns import best_columns
from memstate_core.revise.matching.candidates.inverted_file import near_rows
from memstate_core.state.process.parallel import cores

WIDER = 3
"""How many times as many neighbours the rough search of sparse rows proposes."""
SMALL = 2_000
"""Sparse rows up to which starting threads takes longer than they save."""
FREQUENT = 0.02
"""The rough search leaves out columns that more than this share of the members have: they discriminate least."""
VAST = 100_000
"""Rows beyond which only a part of each is looked at, and of dense ones only those in near cells (`inverted_file`),
since the products of all whole rows take too long."""
HEAVIEST, LEADING = 12, 128
"""The heaviest columns of a sparse row that are looked at then, and the leading directions of dense ones. They find
some 0.7 and 0.93 of the 20 nearest of each row, the latter 0.87 in near cells (`tests/benchmarks/README.md`)."""
_SAMPLE = 20_000
"""Rows that show the leading directions."""
_WIDE_ROWS, _STRIDED, _CELLS = 512, 64, 100_000_000
"""Rows whose products with all others are computed at once, the groups that these are cut into, and their bound."""


def most_similar(part: Any, k: int) -> tuple[Ints, Ints]:
    """The k rows most similar to each row, itself included, by the rows' order (row, other)."""
    from sparse_dot_topn import sp_matmul_topn

    count = part.shape[0]
    top = sp_matmul_topn(part, part.T.tocsr(), top_n=k, n_threads=cores() if count > SMALL else 1)
    return np.repeat(np.arange(count), np.diff(top.indptr)), top.indices[: top.indptr[-1]].astype(np.int64)


def row_blocks(count: int, step: int) -> Iterable[int]:
    """Where blocks of rows start; the progress of a search of several blocks is reported."""
    starts = range(0, count, step)
    return tracked(starts, "find neighbours", count, "topics", lambda _start: step) if len(starts) > 1 else starts


def bfloat16_is_fast() -> bool:
    """Whether products in bfloat16 are fast here: oneDNN has kernels for them from AVX-512 on; others emulate them."""
    import torch

    return torch.backends.cpu.get_cpu_capability().startswith("AVX512")


def rough_dense(part: Floats, k: int) -> tuple[Ints, Ints]:
    """Twice k of each row's most similar, by products in bfloat16 where the CPU has them.

    Beyond VAST rows, by their leading directions, in the cells near to each.
    """
    import torch

    dtype = torch.bfloat16 if bfloat16_is_fast() else torch.float32
    if len(part) > VAST:
        return near_rows(_leading(part), k, dtype)
    count, k = len(part), 2 * k
    every = torch.zeros((-(-count // _STRIDED) * _STRIDED, part.shape[1]), dtype=dtype)
    every[:count] = torch.from_numpy(part)
    wide, found = max(1, min(count, _WIDE_ROWS, _CELLS // len(every))), []
    products = torch.empty((wide, len(every)), dtype=dtype)
    for start in row_blocks(count, wide):
        some = every[start : min(count, start + wide)]
        block = torch.mm(some, every.T, out=products[: len(some)])
        found.append(best_columns(block, k, _STRIDED)[1].numpy())
    others = np.concatenate(found)
    rows = np.repeat(np.arange(count), others.shape[1])
    kept = others.ravel() < count
    return rows[kept], others.ravel()[kept]


def rough_sparse(part: Any, k: int) -> tuple[Ints, Ints]:
    """Some WIDER * k of each row's most similar, by the columns that at most FREQUENT of the rows have."""
    frequent = np.bincount(part.indices, minlength=part.shape[1]) > FREQUENT * part.shape[0]
    rare = part[:, np.flatnonzero(~frequent)]
    return most_similar(rare if rare.shape[0] <= VAST else _heaviest(rare), WIDER * k)


def _leading(part: Floats) -> Floats:
    """Rows in the directions that hold most of their length (uncentred principal components)."""
    sample = part[:: max(1, len(part) // _SAMPLE)].astype(np.float64)
    directions = np.linalg.eigh(sample.T @ sample).eigenvectors[:, -LEADING:]
    return np.asarray(part @ directions.astype(np.float32))


def _heaviest(matrix: Any) -> Any:
    """The HEAVIEST entries of each row of a CSR matrix."""
    from scipy.sparse import vstack

    return vstack([_heaviest_of(matrix[start : start + VAST]) for start in range(0, matrix.shape[0], VAST)]).tocsr()


def _heaviest_of(matrix: Any) -> Any:
    from scipy.sparse import csr_matrix

    row = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    order = np.lexsort((-matrix.data, row))
    kept = np.sort(order[np.arange(len(order)) - matrix.indptr[row] < HEAVIEST])
    starts = np.searchsorted(row[kept], np.arange(matrix.shape[0] + 1))
    return csr_matrix((matrix.data[kept], matrix.indices[kept], starts), shape=matrix.shape)
