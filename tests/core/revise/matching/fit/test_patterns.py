"""Patterns of agreement add up to what single comparisons do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstate_core.revise.matching.comparison.comparisons import LEVELS, NOTHING, STRATA, Agreement, Compared
from memstate_core.revise.matching.fit.patterns import Patterns, cells

NAMES = ("title", "meaning", "field:year", "field:owner")
SHAPE = len(NAMES), len(STRATA) + 1, LEVELS

comparisons = st.lists(
    st.tuples(st.integers(0, 2), st.dictionaries(st.integers(0, 3), st.integers(0, 2), max_size=4)), max_size=12
)
"""The stratum of each pair, and its levels by comparison."""


def compared(pairs: list[tuple[int, dict[int, int]]]) -> Compared:
    """Of pairs of which only strata and levels matter, by comparison first, as a run has them."""
    levels = [[levels.get(name, NOTHING) for _, levels in pairs] for name in range(len(NAMES))]
    nothing = np.zeros(len(pairs))
    return Compared(
        names=NAMES, made=tuple(Agreement.of_all(np.array(each, np.int8)) for each in levels),
        stratum=np.array([stratum for stratum, _ in pairs], np.int8), rankings=nothing[None, :],
        shared=nothing.astype(np.float32), peers=np.ones(len(nothing), np.int32),
        same_title=nothing > 0, contained=nothing > 0,
    )  # fmt: skip


def drawn(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).normal(size=shape)


@given(comparisons, st.sets(st.integers(0, 3)), st.integers(0, 99))
def test_sums_and_counts_are_those_of_single_comparisons(
    pairs: list[tuple[int, dict[int, int]]], chosen: set[int], seed: int
) -> None:
    table, shares = drawn(seed, *SHAPE), drawn(seed + 100, len(pairs))
    sums, counts = np.zeros(len(pairs)), np.zeros(SHAPE)
    for pair, (stratum, levels) in enumerate(pairs):
        for name in chosen & {*levels}:
            sums[pair] += table[name, stratum, levels[name]]
            counts[name, stratum, levels[name]] += shares[pair]
    patterns = Patterns(compared(pairs), np.isin(range(len(NAMES)), [*chosen]))
    np.testing.assert_allclose(patterns.sums(table), sums, atol=1e-12)
    np.testing.assert_allclose(patterns.counts(shares).reshape(SHAPE), counts, atol=1e-12)


def test_pairs_of_one_pattern_are_added_up_once() -> None:
    """Otherwise patterns would save nothing."""
    alike = Patterns(compared([(1, {0: 2, 3: 1})] * 5), np.ones(len(NAMES), bool))
    assert alike._shown.size == 2
    several = Patterns(compared([(0, {0: 2}), (1, {0: 2}), (0, {0: 1}), (0, {1: 2})]), np.ones(len(NAMES), bool))
    assert several._shown.size == 4


@pytest.mark.parametrize("rows", [[], [1], [2, 0]])
def test_cells_are_places_in_the_flat_table(rows: list[int]) -> None:
    pair, comparison, level = compared([(2, {0: 1, 3: 2}), (0, {1: 0})]).single(np.ones(2, bool))
    stratum = np.array([2, 0], np.int8)[pair]
    table = np.arange(np.prod(SHAPE)).reshape(SHAPE)
    known = [table[0, 2, 1], table[1, 0, 0], table[3, 2, 2]]
    found = cells(comparison[rows], stratum[rows], level[rows])
    assert found.tolist() == [known[row] for row in rows]


@given(comparisons, st.sets(st.integers(0, 11)))
def test_single_comparisons_are_those_of_the_chosen_pairs(
    pairs: list[tuple[int, dict[int, int]]], chosen: set[int]
) -> None:
    of = compared(pairs).single(np.isin(np.arange(len(pairs)), [*chosen]))
    found = list(zip(*(each.tolist() for each in of), strict=True))
    wanted = [(pair, name, level) for pair, (_, levels) in enumerate(pairs) for name, level in levels.items()]
    assert found == sorted((each for each in wanted if each[0] in chosen), key=lambda each: (each[1], each[0]))
