"""A search for near rows among very many dense ones that does not compare all of them.

Rows are put into cells around centroids, and each row is compared with the members of the cells that are nearest to it
(an inverted file, as in Jégou, Douze and Schmid, 2011). Cells are so few that each holds many rows.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from memstate_core.model.progress import tracked
from memstate_core.revise.matching.arrays import Floats, Ints
from memstate_core.revise.matching.candidates.best_columns import best_columns

CELLS, PROBED = 256, 24
"""Cells that rows are put into, and how many of them a row is compared with."""
LARGEST = 4
"""How many times the mean a cell may hold; larger ones are cut, so that rows in one place do not meet all others."""
_ROUNDS, _PER_CELL = 3, 80
"""Rounds of k-means, and the rows for each cell that it looks at."""
_ROWS, _STRIDED = 16_384, 16
"""Rows whose proposals are in memory at a time, and the columns of a group (`best_columns`)."""
_HEIGHT, _WIDTH = 512, 256
"""Products are computed of as many rows with a multiple of as many: oneDNN keeps some 600 KiB for each shape."""


def near_rows(part: Floats, k: int, dtype: Any) -> tuple[Ints, Ints]:
    """Twice k of the rows nearest to each row, itself included, and at most k of each cell (row, other).

    Rows of zeros are near to none.

    Args:
        part: rows that are compared by their products.
        k: how many.
        dtype: what torch computes products in.
    """
    import torch

    every = torch.from_numpy(part)
    centroids = _centroids(every)
    order, starts, owner = _members(_nearest_cell(every, centroids).numpy(), len(centroids))
    members = torch.zeros((len(order), every.shape[1]), dtype=dtype)
    members[order >= 0] = every[order[order >= 0]].to(dtype)
    every, centroids, found = every.to(dtype), centroids[owner].to(dtype), []
    blocks = range(0, len(every), _ROWS)
    for start in tracked(blocks, "find neighbours", len(every), "topics", lambda _start: _ROWS):
        row, place = _proposed(every[start : start + _ROWS], members, starts, centroids, k)
        found.append((row + start, order[place]))
    nothing = np.empty(0, np.int64)
    return np.concatenate([*(row for row, _ in found), nothing]), np.concatenate([*(at for _, at in found), nothing])


def _centroids(every: Any) -> Any:
    """Unit vectors at the centres of the cells, by spherical k-means on a part of the rows (cells, dimensions)."""
    import torch

    sample = every[:: max(1, len(every) // (CELLS * _PER_CELL))]
    centroids = sample[:: max(1, -(-len(sample) // CELLS))]
    for _ in range(_ROUNDS):
        sums = torch.zeros_like(centroids).index_add_(0, _nearest_cell(sample, centroids), sample)
        length = sums.norm(dim=1, keepdim=True)
        centroids = torch.where(length > 0, sums / length.clamp(min=1e-12), centroids)
    return centroids


def _nearest_cell(rows: Any, centroids: Any) -> Any:
    """The cell of the centroid with the greatest product (rows,)."""
    import torch

    parts = [(rows[start : start + _ROWS] @ centroids.T).argmax(dim=1) for start in range(0, len(rows), _ROWS)]
    return torch.cat([*parts, torch.empty(0, dtype=torch.int64)])


def _members(cell: Ints, cells: int) -> tuple[Ints, Ints, Ints]:
    """The rows by cell, -1 where one is filled up; where each begins, and the last ends; the centroid of each.

    What is larger than LARGEST is cut in several.

    Args:
        cell: of each row (rows,).
        cells: how many there are.
    """
    order, sizes = np.argsort(cell, kind="stable"), np.bincount(cell, minlength=cells)
    most = max(1, LARGEST * len(cell) // max(1, cells))
    parts = -(-sizes // most)
    owner = np.repeat(np.arange(cells), parts)
    place = np.arange(len(owner)) - np.repeat(np.cumsum(parts) - parts, parts)
    size = np.minimum(most, sizes[owner] - place * most)
    starts = np.concatenate([[0], np.cumsum(-(-size // _WIDTH) * _WIDTH)])
    filled = np.full(starts[-1], -1)
    filled[np.arange(len(order)) + np.repeat(starts[:-1] - (np.cumsum(size) - size), size)] = order
    return filled, starts, owner


def _proposed(rows: Any, members: Any, starts: Ints, centroids: Any, k: int) -> tuple[Ints, Ints]:
    """Twice k of the members nearest to each of some rows, in the cells nearest to it (row, place of the member).

    Args:
        rows: some rows.
        members: all rows by cell.
        starts: where each cell begins, and where the last one ends (cells + 1,).
        centroids: of the cells.
        k: how many.
    """
    import torch

    probed = (rows @ centroids.T).topk(min(PROBED, len(centroids)), dim=1, sorted=False).indices
    width, cells = probed.shape[1], probed.flatten()
    by_cell = torch.split(torch.argsort(cells, stable=True), torch.bincount(cells, minlength=len(centroids)).tolist())
    best = torch.zeros((len(cells), k), dtype=members.dtype)
    place = torch.zeros((len(cells), k), dtype=torch.int32)
    few = torch.zeros((_HEIGHT, rows.shape[1]), dtype=rows.dtype)
    for slots, (first, last) in zip(by_cell, pairwise(starts.tolist()), strict=True):
        for some in torch.split(slots, _HEIGHT):
            few[: len(some)] = rows[some // width]
            products, columns = best_columns((few @ members[first:last].T)[: len(some)], k, _STRIDED)
            best[some, : products.shape[1]] = products
            place[some, : columns.shape[1]] = (columns + first).to(torch.int32)
    top = best.view(len(rows), -1).topk(min(2 * k, width * k), dim=1, sorted=False)
    kept = (top.values > 0).numpy()
    places = place.view(len(rows), -1).gather(1, top.indices).numpy().astype(np.int64)
    return np.repeat(np.arange(len(rows)), kept.sum(axis=1)), places[kept]
