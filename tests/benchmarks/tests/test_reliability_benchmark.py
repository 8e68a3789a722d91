"""The reliability table: bands, means and shares of true pairs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[1]


def test_bands_have_their_mean_probability_and_share_of_true_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The unlabelled pair 0-4 is left out."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    from reliability import lines, reliability
    from scoring import Labels, pair_keys

    zero, others = np.zeros(4, int), np.array([1, 2, 3, 4])
    labels = Labels(pair_keys(zero[:2], others[[0, 2]], 5), np.array([4, 1, 2, 3, 4]))
    table = reliability(zero, others, np.array([1.0, 0.99, 0.3, 0.3]), labels)
    assert table["from"].to_list() == [0.99, 0.25]
    assert table["pairs"].to_list() == [2, 1]
    assert table["mean"].to_list() == pytest.approx([0.995, 0.3])
    assert table["true"].to_list() == [0.5, 1.0]
    assert lines(table) == [
        "| probability from | 0.99 | 0.25 |",
        "|---|---|---|",
        "| pairs | 2 | 1 |",
        "| mean probability | 0.995 | 0.300 |",
        "| share true | 0.500 | 1.000 |",
    ]
