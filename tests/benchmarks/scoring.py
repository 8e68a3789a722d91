"""Shared by the benchmarks of duplicates: pairs of records as numbers, and their agreement with the labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

Ints = NDArray[np.int64]
Reals = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Result:
    """Pairs that a method calls duplicates, against the labels.

    Attributes:
        pairs: how many it names, unlabelled ones left out.
        true: how many of them are true.
        all_true: how many true pairs there are.
        unlabelled: how many it names that have no label.
    """

    pairs: int
    true: int
    all_true: int
    unlabelled: int = 0

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


@dataclass(frozen=True)
class Labels:
    """What is known about the pairs of some records.

    Attributes:
        truth: keys of the true pairs (`pair_keys`).
        repeats: a code for each record (records,). A pair with equal codes that is not true has no label.
    """

    truth: Ints
    repeats: Ints

    @classmethod
    def complete(cls, truth: Ints, count: int) -> Labels:
        """Labels of `count` records of which every pair is known."""
        return cls(truth, np.arange(count))

    def true(self, a: Ints, b: Ints) -> Flags:
        """Which pairs are true (pairs,)."""
        count = len(self.repeats)
        return np.isin(np.minimum(a, b) * count + np.maximum(a, b), self.truth)

    def unlabelled(self, a: Ints, b: Ints) -> Flags:
        """Which pairs have no label (pairs,)."""
        return (self.repeats[a] == self.repeats[b]) & ~self.true(a, b)

    def judged(self, a: Ints, b: Ints) -> Result:
        """Distinct pairs against the labels."""
        true, unlabelled = int(self.true(a, b).sum()), int(self.unlabelled(a, b).sum())
        return Result(len(a) - unlabelled, true, len(self.truth), unlabelled)

    def judged_groups(self, groups: Ints) -> Result:
        """All pairs within groups against the labels, without listing them.

        Args:
            groups: a group's number for each record (records,).
        """
        a, b = np.divmod(self.truth, len(groups))
        true = groups[a] == groups[b]
        repeated = true & (self.repeats[a] == self.repeats[b])
        cells = np.unique(np.stack([groups, self.repeats]), axis=1, return_counts=True)[1]
        unlabelled = _pairs_within(cells) - int(repeated.sum())
        pairs = _pairs_within(np.bincount(groups)) - unlabelled
        return Result(pairs, int(true.sum()), len(self.truth), unlabelled)


@dataclass(frozen=True)
class Ranking:
    """Precision and recall of scored pairs, by the lowest score that counts.

    Attributes:
        precision: after each distinct score, from the highest on (scores,).
        recall: the same (scores,).
    """

    precision: Reals
    recall: Reals

    @classmethod
    def of(cls, a: Ints, b: Ints, score: NDArray[np.floating], labels: Labels) -> Ranking:
        """Ranks distinct pairs by their score; those without a label are left out."""
        kept = ~labels.unlabelled(a, b)
        score, true = score[kept], labels.true(a[kept], b[kept])
        order = np.argsort(-score, kind="stable")
        last = np.flatnonzero(np.diff(score[order], append=-np.inf))
        found = np.cumsum(true[order])[last]
        return cls(found / (last + 1), found / max(1, len(labels.truth)))

    def recall_at(self, precision: float) -> float:
        """The highest recall of any threshold with at least this precision; 0 where there is none."""
        return float(self.recall[self.precision >= precision].max(initial=0.0))


def _pairs_within(sizes: Ints) -> int:
    return int((sizes * (sizes - 1) // 2).sum())


def pair_keys(a: Ints, b: Ints, count: int) -> Ints:
    """One number for each distinct unordered pair of `count` records, sorted."""
    return np.unique(np.minimum(a, b) * count + np.maximum(a, b))


def pairs_of(groups: Ints) -> tuple[Ints, Ints]:
    """All pairs (a, b), a < b, of records within one group."""
    order = np.argsort(groups, kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(groups[order])) + 1)
    pairs = [np.stack([part[index] for index in np.triu_indices(len(part), 1)]) for part in parts if len(part) > 1]
    a, b = np.concatenate([np.empty((2, 0), np.int64), *pairs], axis=1)
    return a, b


def components(a: Ints, b: Ints, count: int) -> Ints:
    """A group's number for each of `count` records, those that pairs connect having the same."""
    links = coo_array((np.ones(len(a), bool), (a, b)), shape=(count, count))
    return np.asarray(connected_components(links, directed=False)[1], np.int64)
