"""The greatest products of each row, against what sorting gives."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from memstate_core.revise.matching.candidates.best_columns import best_columns


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@given(st.integers(1, 4), st.integers(1, 6), st.sampled_from([1, 2, 8]), st.integers(1, 12), st.integers(0, 9))
def test_the_greatest_positive_ones_are_found(
    dtype: torch.dtype, rows: int, groups: int, strided: int, k: int, seed: int
) -> None:
    values = np.random.default_rng(seed).choice([-0.5, 0.0, 0.25, 0.5, 0.75, 1.0], (rows, groups * strided))
    products, columns = best_columns(torch.tensor(values, dtype=dtype), k, strided)
    assert columns.shape == products.shape == (rows, min(k, groups * strided))
    for row, found, at in zip(values, products.tolist(), columns.tolist(), strict=True):
        assert len({*at}) == len(at)
        assert row[at].tolist() == found
        best = sorted(row, reverse=True)[:k]
        assert sorted(value for value in found if value > 0) == sorted(value for value in best if value > 0)
