"""What merges in force say about matches in a scope.

A merged pair is no candidate any more. Without it a later fit would see only what was left over: few matches, sources
that seem to repeat themselves, and fields that seem to contradict. So merges in force count wherever candidates do.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memstate_core.model.frames import Schema, empty
from memstate_core.revise.matching.arrays import Ints
from memstate_core.revise.matching.candidates.blocking import Candidates

MERGED_LEVELS: Schema = {
    "pair": pl.UInt32, "name": pl.String, "level": pl.Int64, "stratum": pl.Int64, "probability": pl.Float64
}  # fmt: skip
"""A comparison of a merged pair: its level, the stratum of the pair's titles, and the probability of the pair."""
MERGED_FIELDS: Schema = {
    "merge": pl.Int64,
    "name": pl.String,
    "across": pl.Boolean,
    "identical": pl.Boolean,
    "titled": pl.Boolean,
    "differs": pl.Boolean,
}
"""A field that both topics of a merged pair had: the number of the merge, whether the merged topic has several sources,
whether the pair was the same beyond doubt, whether the titles agreed, and whether the values differed."""

MERGED_PARTS: Schema = {"merge": pl.Int64, "row": pl.Int64, "name": pl.String}
"""A part in which both topics of a pair agreed that a run merged by itself with the same title, which is one of the
parts: the merge's number and the topic that it led to."""


@dataclass(frozen=True)
class EarlierMerges:
    """The merges in force into the topics of a corpus: those of runs, and those of people, with probability 1.

    Attributes:
        levels: columns MERGED_LEVELS.
        fields: columns MERGED_FIELDS.
        equal: columns MERGED_PARTS.
        absorbed: how many topics were merged into each topic (topics,).
        by_runs: the same, of merges that runs made by themselves; which pairs people judged depends on what was asked,
            so their merges say nothing about how often sources repeat themselves (topics,).
        links: how many of the merges runs made by themselves; each was a link without a contradiction.
    """

    levels: pl.DataFrame
    fields: pl.DataFrame
    equal: pl.DataFrame
    absorbed: Ints
    by_runs: Ints
    links: int

    @classmethod
    def none(cls, topics: int) -> EarlierMerges:
        """No merges into so many topics."""
        nothing = np.zeros(topics, np.int64)
        return cls(empty(MERGED_LEVELS), empty(MERGED_FIELDS), empty(MERGED_PARTS), nothing, nothing, 0)

    def displaced(self, pairs: Candidates, eligible: NDArray[np.bool_]) -> float:
        """About how many candidates are missing because topics were merged: as many for each as other topics have.

        Args:
            pairs: the candidates.
            eligible: those that may be matches (pairs,).
        """
        ends = np.concatenate([pairs.a[eligible], pairs.b[eligible]])
        has = np.bincount(ends, minlength=len(self.absorbed)) > 0
        missing = self.absorbed.sum() + ((self.absorbed > 0) & ~has).sum()
        return float(missing * len(ends) / max(1, has.sum()) / 2)
