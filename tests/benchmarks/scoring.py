"""Shared by the benchmarks of duplicates: pairs of records as numbers, and their agreement with the truth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Result:
    """Pairs that a method calls duplicates, against the true ones.

    Attributes:
        pairs: how many it names.
        true: how many of them are true.
        all_true: how many true pairs there are.
    """

    pairs: int
    true: int
    all_true: int

    @property
    def precision(self) -> float:
        """The share of its pairs that are true; 0 where it names none."""
        return self.true / self.pairs if self.pairs else 0.0

    @property
    def recall(self) -> float:
        """The share of true pairs that it names; 0 where there are none."""
        return self.true / self.all_true if self.all_true else 0.0

    @property
    def f1(self) -> float:
        """The harmonic mean of both."""
        return 2 * self.true / max(1, self.pairs + self.all_true)


def pair_keys(a: Ints, b: Ints, count: int) -> Ints:
    """One number for each distinct unordered pair of `count` records, sorted."""
    return np.unique(np.minimum(a, b) * count + np.maximum(a, b))


def judged(found: Ints, truth: Ints) -> Result:
    """Compares two sets of pair keys."""
    return Result(len(found), len(np.intersect1d(found, truth, assume_unique=True)), len(truth))


def judged_groups(groups: Ints, truth: Ints) -> Result:
    """All pairs within groups against the truth, without listing them.

    Args:
        groups: a group's number for each record (records,).
        truth: keys of the true pairs.
    """
    a, b = np.divmod(truth, len(groups))
    sizes = np.bincount(groups)
    return Result(int((sizes * (sizes - 1) // 2).sum()), int((groups[a] == groups[b]).sum()), len(truth))


def components(a: Ints, b: Ints, count: int) -> Ints:
    """A group's number for each of `count` records, those that pairs connect having the same."""
    links = coo_array((np.ones(len(a), bool), (a, b)), shape=(count, count))
    return np.asarray(connected_components(links, directed=False)[1], np.int64)
