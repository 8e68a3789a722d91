"""Nearest rows against what plain loops give; corpora with next to nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from memstate_core.revise.matching.candidates import nearest as nearest_module
from memstate_core.revise.matching.candidates.blocking import all_pairs, completeness, nearest_neighbours, within_groups
from memstate_core.revise.matching.candidates.nearest import nearest
from memstate_core.revise.matching.comparison.comparisons import compare
from tests.core.revise.matching.corpora import corpus, dedupe, every_pair

Matrix = NDArray[np.float32]

matrices = st.tuples(st.integers(0, 9), st.integers(1, 6)).flatmap(
    lambda shape: arrays(np.float32, shape, elements=st.sampled_from([0, 0, 0.25, 0.5, 1, 2]))
)
shapes = st.sampled_from([np.asarray, csr_matrix])


def unit_length(matrix: Matrix) -> Matrix:
    return matrix / np.maximum(np.linalg.norm(matrix, axis=1, keepdims=True), 1e-9)


def similarities(matrix: Matrix, row: int, members: NDArray[np.int64]) -> dict[int, float]:
    """Of a row to each other member, by plain loops, where there is any."""
    found = {int(other): float(matrix[row] @ matrix[other]) for other in members if other != row}
    return {other: value for other, value in found.items() if value > 0}


@given(matrices, shapes, st.integers(0, 5), st.integers(1, 30), st.data())
def test_nearest_is_what_brute_force_finds(matrix: Matrix, shape: Any, k: int, cells: int, data: st.DataObject) -> None:
    """Ties may fall either way, so the similarities are compared, row by row."""
    matrix = unit_length(matrix)
    members = np.array(sorted(data.draw(st.sets(st.sampled_from(range(len(matrix))))) if len(matrix) else []), np.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nearest_module, "_ROW_CELLS", cells)
        a, b = nearest(shape(matrix), members, k)
    assert (a < b).all()
    assert np.isin(np.concatenate([a, b]), members).all()
    found = set(zip(a.tolist(), b.tolist(), strict=True))
    for row in members.tolist():
        known = similarities(matrix, row, members)
        best = sorted(known.values(), reverse=True)[:k]
        own = sorted((value for other, value in known.items() if (min(row, other), max(row, other)) in found))[::-1]
        np.testing.assert_allclose(own[: len(best)], best, atol=1e-6)
    assert all(b in similarities(matrix, a, members) for a, b in found)
    assert len(a) <= k * len(members)


def clustered(count: int, columns: int) -> Matrix:
    """Rows that belong together five by five, by columns that few have, with some columns that all have."""
    chance = np.random.default_rng(11)
    centres = np.where(chance.random((count // 5, columns)) < 8 / columns, chance.random((count // 5, columns)), 0)
    rows = np.repeat(centres, 5, axis=0) + np.where(chance.random((count, columns)) < 2 / columns, 0.5, 0)
    rows[:, :3] = 0.05
    return unit_length(rows.astype(np.float32))


@pytest.mark.slow
@pytest.mark.parametrize(("shape", "columns"), [(np.asarray, 384), (csr_matrix, 3000)])
def test_in_a_large_store_the_rough_search_misses_next_to_nothing(
    shape: Any, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = clustered(1000, columns)
    every = np.arange(len(rows))
    exact = set(zip(*(end.tolist() for end in nearest(shape(rows), every, 4)), strict=True))
    monkeypatch.setattr(nearest_module, "LARGE", 999)
    a, b = nearest(shape(rows), every, 4)
    rough = set(zip(a.tolist(), b.tolist(), strict=True))
    assert (a < b).all()
    assert len(a) <= 4 * len(rows)
    assert len(exact & rough) >= 0.98 * len(exact)
    assert len(rough - exact) <= 0.02 * len(exact)


EMPTY = {"title": None, "vector": [0.0]}


@pytest.mark.parametrize(
    "topics",
    [[], [EMPTY], [EMPTY] * 2, [{"title": "Acme"}], [{"title": "Acme", "vector": [0.0]}] * 3, [EMPTY, {"title": "A"}]],
)
def test_a_store_with_next_to_nothing_goes_through_every_step(topics: list[dict[str, Any]]) -> None:
    of = corpus(topics)
    pairs, known = every_pair(of), nearest_neighbours(of)
    assert len(compare(of, pairs)) == len(pairs) == all_pairs(of)
    assert len(within_groups(of, known, np.zeros(len(known), bool))) == 0
    assert completeness(known.seen_by, np.zeros(len(known))) is None
    found = dedupe(topics)
    assert len(found.groups) == len(topics)
    assert not found.origins.distinct.any()
    assert ((found.scored.probability >= 0) & (found.scored.probability <= 1)).all()
