"""Products of pairs of rows, weighted texts, and sets and ranks of numbers, against what plain loops give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from memstate_core.revise.matching import arrays as arrays_module
from memstate_core.revise.matching.arrays import (
    codes_of,
    dense_ranks,
    distinct,
    named_incidence,
    pair_products,
    tfidf,
    weighted,
    without,
)
from memstate_core.revise.matching.texts.tokens import words

Matrix = NDArray[np.float32]

matrices = st.tuples(st.integers(0, 9), st.integers(1, 6)).flatmap(
    lambda shape: arrays(np.float32, shape, elements=st.sampled_from([0, 0, 0.25, 0.5, 1, 2]))
)
shapes = st.sampled_from([np.asarray, csr_matrix])


@given(matrices, st.data())
def test_weighted_columns_have_no_entries_left_where_the_weight_is_0(matrix: Matrix, data: st.DataObject) -> None:
    weights = np.array([data.draw(st.sampled_from([0.0, 0.5, 2.0])) for _ in range(matrix.shape[1])], np.float32)
    found = weighted(csr_matrix(matrix), weights)
    np.testing.assert_array_equal(found.toarray(), matrix * weights)
    assert found.nnz == np.count_nonzero(found.toarray())


@given(st.lists(st.sampled_from(["", "a", "b", "ba", "é", "\U0001f600", "\uffff"])))
def test_equal_texts_have_equal_codes_in_the_order_of_the_texts(texts: list[str]) -> None:
    assert codes_of(texts).tolist() == [sorted({*texts}).index(text) for text in texts]


@given(matrices, shapes, st.integers(1, 4), st.sampled_from([0, 100]), st.randoms(use_true_random=False))
def test_pair_products_are_inner_products(matrix: Matrix, shape: Any, block: int, few: int, chance: Any) -> None:
    count = 0 if not len(matrix) else 7
    a, b = (np.array([chance.randrange(len(matrix)) for _ in range(count)], np.int64) for _ in range(2))
    other = matrix[::-1] * 2
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrays_module, "_PAIR_BLOCK", block)
        patch.setattr(arrays_module, "_DENSE_PAIRS", 2)
        patch.setattr(arrays_module, "_FEW_PAIRS", few)
        products = pair_products(shape(matrix), shape(other), a, b)
    assert products.dtype == np.float32
    np.testing.assert_allclose(products, [matrix[i] @ other[j] for i, j in zip(a, b, strict=True)], atol=1e-5)


NUMBERS = arrays(np.int64, st.integers(0, 12), elements=st.integers(0, 30))


@given(NUMBERS, NUMBERS)
def test_numbers_that_are_not_among_others(numbers: NDArray[np.int64], known: NDArray[np.int64]) -> None:
    assert without(numbers, known).tolist() == sorted({*numbers.tolist()} - {*known.tolist()})


@given(NUMBERS, st.sampled_from([31, 10_000]))
def test_dense_ranks_are_places_among_the_distinct(numbers: NDArray[np.int64], below: int) -> None:
    """Whether they are counted or sorted."""
    places = {number: place for place, number in enumerate(sorted({*numbers.tolist()}))}
    assert dense_ranks(numbers, below).tolist() == [places[number] for number in numbers.tolist()]


def test_rows_of_weighted_texts_have_unit_length_or_none() -> None:
    rows = tfidf(["acme renewal", "", "acme"], words).toarray()
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), [1, 0, 1], atol=1e-6)
    assert rows[0] @ rows[2] > 0


@pytest.mark.parametrize("texts", [[], [""], ["", "!"]])
def test_texts_without_a_term_give_one_empty_column(texts: list[str]) -> None:
    matrix = tfidf(texts, words)
    assert (matrix.shape, matrix.nnz) == ((len(texts), 1), 0)


def test_rows_of_names_become_ones_under_the_names_of_all() -> None:
    matrix, names = named_incidence([["b"], [], ["c", "a"]])
    assert names == ["a", "b", "c"]
    assert matrix.toarray().tolist() == [[0, 1, 0], [0, 0, 0], [1, 0, 1]]
    matrix, names = named_incidence([[], []])
    assert (matrix.shape, names) == ((2, 1), [""])


def test_distinct_numbers_of_several_parts() -> None:
    assert distinct([np.array([5, 0, 5]), np.array([2, 0])]).tolist() == [0, 2, 5]
    assert distinct([]).tolist() == []
