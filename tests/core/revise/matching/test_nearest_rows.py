"""The search for nearest rows: exact where there are few, and nearly so, but linear in memory, where there are many."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from memstate_core.revise.matching import nearest as nearest_module
from memstate_core.revise.matching.arrays import distinct, tfidf
from memstate_core.revise.matching.nearest import nearest
from memstate_core.revise.matching.rough_search import bfloat16_is_fast
from memstate_core.revise.matching.tokens import folded, words

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
    monkeypatch.setattr(nearest_module, "FREQUENT", 0.5)
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
    monkeypatch.setattr(nearest_module, "bfloat16_is_fast", lambda: fast)
    rows, members = _dense(300, np.random.default_rng(1)), np.arange(300)
    assert set(zip(*nearest(rows, members, K), strict=True)) == _by_definition(rows, members, K)


def test_few_rows_and_none() -> None:
    rows = np.ones((1, 4), np.float32) / 2
    assert [part.tolist() for part in nearest(rows, np.arange(1), K)] == [[], []]
    assert [part.tolist() for part in nearest(tfidf(["", ""], words), np.arange(2), K)] == [[], []]


def test_distinct_numbers_of_several_parts() -> None:
    assert distinct([np.array([5, 0, 5]), np.array([2, 0])]).tolist() == [0, 2, 5]
    assert distinct([]).tolist() == []


def test_folding_is_the_same_for_plain_and_other_letters() -> None:
    assert folded("Caf\u00e9 \ufb01ne STRASSE") == "cafe fine strasse"
    assert folded("CAFE FINE") == "cafe fine"
