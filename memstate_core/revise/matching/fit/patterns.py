"""Patterns of agreement: what millions of pairs agree in, each combination of levels once.

The probabilities of the model depend on the pattern of a pair alone (Fellegi and Sunter, 1969), so a fit adds up
weights by pattern, and counts matches by pattern, instead of by single comparison of each pair.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from memstate_core.revise.matching.arrays import Ints, dense_ranks
from memstate_core.revise.matching.comparison.comparisons import LEVELS, STRATA, Compared

Reals = NDArray[np.float64]


class Patterns:
    """The patterns in which pairs agree in some comparisons, within their stratum.

    Args:
        compared: what was compared of the pairs.
        chosen: which comparisons count (names,).
    """

    def __init__(self, compared: Compared, chosen: NDArray[np.bool_]) -> None:
        self._pattern = _patterns(compared, chosen)
        self._count = int(self._pattern.max(initial=-1)) + 1
        self._size = table_size(len(compared.names))
        an_example = np.zeros(len(compared), bool)
        an_example[_first(self._pattern, self._count)] = True
        pair, comparison, level = compared.single(an_example)
        shown = chosen[comparison]
        self._shown = self._pattern[pair[shown]]
        self._cell = cells(comparison[shown], compared.stratum[pair[shown]], level[shown])

    def sums(self, table: Reals) -> Reals:
        """What the comparisons of each pair add up to (pairs,).

        Args:
            table: what a level adds, by comparison, stratum and level.
        """
        added = np.bincount(self._shown, table.ravel()[self._cell], minlength=self._count)
        return np.asarray(added[self._pattern], np.float64)

    def counts(self, shares: Reals) -> Reals:
        """How much of the pairs each level has (a flat table by comparison, stratum and level).

        Args:
            shares: how much each pair counts for (pairs,).
        """
        of_patterns = np.bincount(self._pattern, shares, minlength=self._count)
        return np.bincount(self._cell, of_patterns[self._shown], minlength=self._size).astype(np.float64)


def table_size(comparisons: int) -> int:
    """The cells of a table by comparison, stratum and level."""
    return comparisons * (len(STRATA) + 1) * LEVELS


def cells(comparison: NDArray[Any], stratum: NDArray[Any], level: NDArray[Any]) -> Ints:
    """The places of single comparisons in a flat table by comparison, stratum and level (three arrays (rows,))."""
    return np.asarray((comparison.astype(np.int64) * (len(STRATA) + 1) + stratum) * LEVELS + level)


def _patterns(compared: Compared, chosen: NDArray[np.bool_]) -> NDArray[np.int32]:
    """The same number for pairs of one stratum with the same levels in some comparisons (pairs,).

    Each comparison in turn separates the pairs that have it by their levels.
    """
    pattern, count = compared.stratum.astype(np.int64), len(STRATA) + 1
    for each in (compared.made[place] for place in np.flatnonzero(chosen)):
        finer = dense_ranks(pattern[each.pair] * LEVELS + each.level, count * LEVELS)
        pattern[each.pair] = count + finer
        count += int(finer.max(initial=-1)) + 1
    return dense_ranks(pattern, count).astype(np.int32)


def _first(pattern: NDArray[np.int32], count: int) -> Ints:
    """The position of the first pair of each pattern (patterns,)."""
    first = np.empty(count, np.int64)
    first[pattern[::-1]] = np.arange(len(pattern))[::-1]
    return first
