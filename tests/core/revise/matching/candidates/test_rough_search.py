"""The rough search for nearest rows, of which exact products choose, where there are many."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from memstate_core.revise.matching.arrays import tfidf
from memstate_core.revise.matching.candidates import nearest as nearest_module
from memstate_core.revise.matching.candidates import rough_search
from memstate_core.revise.matching.candidates.nearest import nearest
from memstate_core.revise.matching.candidates.rough_search import bfloat16_is_fast
from memstate_core.revise.matching.texts.tokens import words

K = 5


def _dense(count: int, rng: np.random.Generator) -> NDArray[np.float32]:
    rows = rng.standard_normal((count, 32), dtype=np.float32)
    rows[3] = 0
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)


def _by_definition(rows: NDArray[np.float32], members: NDArray[np.int64], k: int) -> set[tuple[int, int]]:
    found = set()
    for one in members:
        ranked = sorted(((float(rows[one] @ rows[other]), other) for other in members if other != one), reverse=True)
        found |= {(min(one, other), max(one, other)) for product, other in ranked[:k] if product > 0}
    return found


@pytest.mark.parametrize("large", [10_000, 0], ids=["exact", "rough first"])
def test_dense_rows_find_their_nearest(monkeypatch: pytest.MonkeyPatch, large: int) -> None:
    monkeypatch.setattr(nearest_module, "LARGE", large)
    rows, members = _dense(300, np.random.default_rng(1)), np.arange(20, 230)
    members = np.concatenate([members, [3, 250]])
    found = set(zip(*nearest(rows, members, K), strict=True))
    assert found == _by_definition(rows, members, K)


def test_sparse_rows_find_their_nearest_by_rare_words(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    texts = [f"the common word{a} word{b} word{c}" for a, b, c in rng.integers(0, 60, (200, 3))]
    texts[7] = texts[150] = "the common rarity"
    matrix, members = tfidf(texts, words), np.arange(200)
    exact = set(zip(*nearest(matrix, members, K), strict=True))
    monkeypatch.setattr(nearest_module, "LARGE", 0)
    monkeypatch.setattr(rough_search, "FREQUENT", 0.5)
    rough = set(zip(*nearest(matrix, members, K), strict=True))
    products = {pair: (matrix[pair[0]] @ matrix[pair[1]].T).sum() for pair in rough | exact}
    assert (7, 150) in rough
    assert min(products[pair] for pair in rough) > 0
    sure = {pair for pair in exact if products[pair] > 0.4}
    assert sure
    assert sure <= rough


@pytest.mark.parametrize(
    ("capability", "fast"), [("AVX512", True), ("AVX512_AMX", True), ("AVX2", False), ("DEFAULT", False)]
)
def test_bfloat16_is_used_from_avx512_on(monkeypatch: pytest.MonkeyPatch, capability: str, fast: bool) -> None:
    monkeypatch.setattr("torch.backends.cpu.get_cpu_capability", lambda: capability)
    assert bfloat16_is_fast() is fast


@pytest.mark.parametrize("fast", [True, False])
def test_dense_rows_find_the_same_neighbours_with_and_without_bfloat16(
    monkeypatch: pytest.MonkeyPatch, fast: bool
) -> None:
    monkeypatch.setattr(nearest_module, "LARGE", 0)
    monkeypatch.setattr(rough_search, "bfloat16_is_fast", lambda: fast)
    rows, members = _dense(300, np.random.default_rng(1)), np.arange(300)
    assert set(zip(*nearest(rows, members, K), strict=True)) == _by_definition(rows, members, K)


def test_few_rows_and_none() -> None:
    rows = np.ones((1, 4), np.float32) / 2
    assert [part.tolist() for part in nearest(rows, np.arange(1), K)] == [[], []]
    assert [part.tolist() for part in nearest(tfidf(["", ""], words), np.arange(2), K)] == [[], []]


def _near_duplicates(count: int, dimension: int) -> NDArray[np.float32]:
    """Rows of which each second one is the one before it, turned a little."""
    rng = np.random.default_rng(4)
    rows = rng.standard_normal((count, dimension), dtype=np.float32)
    rows[1::2] = rows[::2] + 0.3 * rows[1::2]
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_among_very_many_dense_rows_near_duplicates_are_found_by_their_leading_directions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = _near_duplicates(1000, 384)
    found = nearest_with(monkeypatch, rows)
    assert {(at, at + 1) for at in range(0, 1000, 2)} <= found
    monkeypatch.setattr(rough_search, "LEADING", 1)
    assert not {(at, at + 1) for at in range(0, 1000, 2)} <= nearest_with(monkeypatch, rows)


def test_leading_directions_are_those_that_hold_most_of_the_rows() -> None:
    rows = np.zeros((500, 200), np.float32)
    rows[:, 150:] = np.random.default_rng(5).standard_normal((500, 50))
    part = rough_search._leading(rows)
    assert part.shape == (500, rough_search.LEADING)
    np.testing.assert_allclose(part @ part.T, rows @ rows.T, atol=1e-3)


def test_among_very_many_sparse_rows_the_heaviest_columns_find_near_duplicates(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(6)
    texts = [" ".join(f"word{number}" for number in row) for row in rng.integers(0, 3000, (300, 30))]
    texts += [text.replace("word7", "word8") + " more" for text in texts]
    found = nearest_with(monkeypatch, tfidf(texts, words))
    assert {(at, at + 300) for at in range(300)} <= found


def test_the_heaviest_columns_of_each_row_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rough_search, "HEAVIEST", 2)
    monkeypatch.setattr(rough_search, "VAST", 2)
    rows = csr_matrix(np.array([[1, 3, 2, 0], [0, 0, 0, 0], [0, 4, 0, 0], [5, 1, 1, 6]], np.float32))
    kept = [[0, 3, 2, 0], [0, 0, 0, 0], [0, 4, 0, 0], [5, 0, 0, 6]]
    assert rough_search._heaviest(rows).toarray().tolist() == kept


def nearest_with(monkeypatch: pytest.MonkeyPatch, rows: Any) -> set[tuple[int, int]]:
    """The pairs found as if there were very many rows."""
    monkeypatch.setattr(nearest_module, "LARGE", 0)
    monkeypatch.setattr(rough_search, "VAST", 100)
    return set(zip(*nearest(rows, np.arange(rows.shape[0]), K), strict=True))
