"""Patterns of agreement: what millions of pairs agree in, each combination of levels once.

The probabilities of the model depend on the pattern of a pair alone (Fellegi and Sunter, 1969), so a fit adds up
weights by pattern, and counts matches by pattern, instead of by single comparison of each pair.
"""

from __future__ import annotations

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
        rows = np.flatnonzero(chosen[compared.comparison])
        self._pattern = _patterns(compared, rows)
        self._count = int(self._pattern.max(initial=-1)) + 1
        self._size = table_size(len(compared.names))
        an_example = np.zeros(len(compared), bool)
        an_example[_first(self._pattern, self._count)] = True
        shown = rows[an_example[compared.pair[rows]]]
        self._shown, self._cell = self._pattern[compared.pair[shown]], cells(compared, shown)

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


def cells(compared: Compared, rows: Ints) -> Ints:
    """The places of single comparisons in a flat table by comparison, stratum and level.

    Args:
        compared: what was compared of pairs.
        rows: positions of single comparisons (rows,).
    """
    stratum = compared.stratum[compared.pair[rows]].astype(np.int64)
    return (compared.comparison[rows] * (len(STRATA) + 1) + stratum) * LEVELS + compared.level[rows]


def _patterns(compared: Compared, rows: Ints) -> Ints:
    """The same number for pairs of one stratum with the same levels in some single comparisons (pairs,).

    Each comparison in turn separates the pairs that have it by their levels.
    """
    pattern, count = compared.stratum.astype(np.int64), len(STRATA) + 1
    rows = rows[np.argsort(compared.comparison[rows], kind="stable")]
    for part in np.split(rows, np.flatnonzero(np.diff(compared.comparison[rows])) + 1):
        pair = compared.pair[part]
        finer = dense_ranks(pattern[pair] * LEVELS + compared.level[part], count * LEVELS)
        pattern[pair] = count + finer
        count += int(finer.max(initial=-1)) + 1
    return dense_ranks(pattern, count)


def _first(pattern: Ints, count: int) -> Ints:
    """The position of the first pair of each pattern (patterns,)."""
    first = np.empty(count, np.int64)
    first[pattern[::-1]] = np.arange(len(pattern))[::-1]
    return first
