"""Scores are comparable: within a scope by its own distribution, in a small scope by the usual one."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from memstate_core.retrieve.scope_data import segment_numbers
from memstate_core.retrieve.scoring import _best_of
from memstate_core.retrieve.standard_scores import COSINE_PRIOR, standardised


def test_many_rows_are_standardised_by_themselves():
    values = np.random.default_rng(1).normal(0.5, 0.2, 100_000)
    scores = standardised(values, COSINE_PRIOR)
    assert scores == pytest.approx((values - values.mean()) / values.std(), abs=0.01)


def test_a_single_row_is_compared_with_what_is_usual():
    low, high = (standardised(np.array([cosine]), COSINE_PRIOR)[0] for cosine in (0.1, 0.8))
    assert low == pytest.approx(0)
    assert 1 < high < 10


def test_the_unknown_is_neutral_and_changes_nothing():
    values = np.array([0.1, 0.4, np.nan, 0.2])
    scores = standardised(values, COSINE_PRIOR)
    assert scores[2] == 0
    assert scores[[0, 1, 3]] == pytest.approx(standardised(values[[0, 1, 3]], COSINE_PRIOR))
    assert standardised(np.array([np.nan]), COSINE_PRIOR).tolist() == [0]
    assert standardised(np.zeros(0), COSINE_PRIOR).tolist() == []


def test_a_topic_lends_within_a_session_only() -> None:
    """A topic that went on for years would lend its best turn's score to all of them."""
    scores, sessions = np.array([1.0, 5.0, 2.0, 3.0, 4.0]), np.array([0, 0, 2, 2, 4], dtype=np.int32)
    lent = _best_of(scores, segment_numbers(pl.Series(["a", "a", "a", "b", None], dtype=pl.String), sessions))
    assert lent.tolist() == [5.0, 5.0, 2.0, 3.0, 4.0]
