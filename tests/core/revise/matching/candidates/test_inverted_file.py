"""Near rows in cells: all of them where every cell is looked at, and next to all near duplicates where few are."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from memstate_core.revise.matching.arrays import Ints
from memstate_core.revise.matching.candidates import inverted_file
from memstate_core.revise.matching.candidates.inverted_file import near_rows

K = 4


def unit_length(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    return (rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)).astype(np.float32)


def drawn(count: int, seed: int = 1) -> NDArray[np.float32]:
    return unit_length(np.random.default_rng(seed).standard_normal((count, 16), dtype=np.float32))


def found(rows: NDArray[np.float32], k: int = K) -> dict[int, list[int]]:
    """The others of each row, by `near_rows` in float32."""
    row, other = near_rows(rows, k, torch.float32)
    assert (np.diff(row) >= 0).all()
    return {one: other[row == one].tolist() for one in range(len(rows))}


@pytest.fixture
def small_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inverted_file, "CELLS", 8)
    monkeypatch.setattr(inverted_file, "_WIDTH", 16)
    monkeypatch.setattr(inverted_file, "_ROWS", 64)
    monkeypatch.setattr(inverted_file, "_HEIGHT", 8)


@pytest.mark.usefixtures("small_cells")
def test_where_all_cells_are_looked_at_the_nearest_of_all_rows_are_found() -> None:
    rows = drawn(200)
    products = rows @ rows.T
    for one, others in found(rows, 100).items():
        assert len({*others}) == len(others)
        best = np.sort(products[one][products[one] > 1e-6])[::-1]
        np.testing.assert_allclose(np.sort(products[one][others])[::-1][: len(best)], best, atol=1e-5)


@pytest.mark.usefixtures("small_cells")
def test_few_cells_have_the_near_duplicates(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row has at most twice k, and of each cell at most k."""
    monkeypatch.setattr(inverted_file, "PROBED", 2)
    rows = drawn(300)
    twins = unit_length(rows + 0.1 * drawn(300, 2))
    others = found(np.concatenate([rows, twins]))
    assert max(map(len, others.values())) <= 2 * K
    paired = sum(one + 300 in others[one] or one in others[one + 300] for one in range(300))
    assert paired >= 297
    compared = sum(map(len, found(np.concatenate([rows, twins]), 600).values()))
    assert compared < 0.6 * 600 * 300


@pytest.mark.usefixtures("small_cells")
def test_rows_in_one_place_do_not_meet_all_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inverted_file, "PROBED", 2)
    rows = np.repeat(drawn(1), 400, axis=0)
    assert {len(others) for others in found(rows).values()} == {2 * K}
    assert {len(others) for others in found(rows, 400).values()} == {2 * inverted_file.LARGEST * 400 // 8}


def test_rows_of_zeros_are_near_to_none() -> None:
    rows = drawn(60)
    rows[[0, 7, 59]] = 0
    others = found(rows, 60)
    assert [one for one in others if not others[one]] == [0, 7, 59]
    assert not {0, 7, 59} & {other for row in others.values() for other in row}
    assert found(rows, 60) == others
    for count in (0, 1, 5):
        assert near_rows(np.zeros((count, 3), np.float32), K, torch.float32)[0].size == 0


@pytest.mark.usefixtures("small_cells")
@pytest.mark.parametrize("sizes", [[5, 0, 40, 1, 0, 0, 2, 0], [100, 0, 0, 0, 0, 0, 0, 0], [6] * 8, [0] * 8])
def test_each_row_is_in_one_cell_and_none_is_too_large(sizes: list[int]) -> None:
    cell: Ints = np.random.default_rng(3).permutation(np.repeat(np.arange(8), sizes))
    order, starts, owner = inverted_file._members(cell, 8)
    assert sorted(order[order >= 0].tolist()) == list(range(len(cell)))
    assert (starts % 16 == 0).all()
    assert starts[-1] == len(order)
    for number, (start, end) in enumerate(pairwise(starts)):
        inside = order[start:end]
        assert (cell[inside[inside >= 0]] == owner[number]).all()
        assert 0 < (inside >= 0).sum() <= max(1, inverted_file.LARGEST * len(cell) // 8)
