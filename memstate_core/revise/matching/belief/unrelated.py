"""Topics with unrelated titles that agree in all parts, or in all but one."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memstate_core.revise.matching.arrays import Ints
from memstate_core.revise.matching.comparison.parts import Sample, sampled
from memstate_core.revise.matching.corpus import Corpus

SHRINK = 10.0
"""How many pairs the share of a part in the scope counts for, beside its share among some pairs."""


class Unrelated:
    """Pairs of topics with unrelated titles that agree in all parts, or in all but one."""

    def __init__(self, corpus: Corpus, parts: pl.DataFrame) -> None:
        self._corpus = corpus
        self._parts = parts.with_columns(hash=pl.struct("name", "key").hash(), named=pl.col("name").hash())
        self._all, self._names = (self._sums(column) for column in ("hash", "named"))

    def dependence(self, shares: pl.DataFrame) -> float:
        """The logarithm of how much more often topics with the same parts agree in all than shares say; at least 0."""
        has = self._parts["row"].unique().sort().to_numpy()
        if len(has) < 2:
            return 0.0
        together = self._unrelated(has, self._all[has]).weight.sum()
        joined = self._parts.join(shares, on="name")
        log = np.bincount(joined["row"].to_numpy(), joined["log"].to_numpy(), minlength=len(self._corpus))[has]
        named = np.unique(self._names[has], return_inverse=True)[1]
        unrelated = self._unrelated(has, np.zeros(len(has), np.uint64)).weight.sum() / (len(has) * (len(has) - 1) / 2)
        alone = float((np.exp(log) * (np.bincount(named)[named] - 1) / 2).sum() * unrelated)
        return float(np.log(max(1.0, (together + 1) / (alone + 1))))

    def share(self, name: str, share: float) -> float:
        """How often topics that agree in all other parts agree in this one, too; near the given share if few do."""
        own = self._parts.filter(pl.col("name") == name)
        rows, hashes = own["row"].to_numpy(), own["hash"].to_numpy()
        found = self._unrelated(rows, self._all[rows] - hashes)
        value = np.zeros(len(self._corpus), np.uint64)
        value[rows] = hashes
        agreeing = found.weight[value[found.a] == value[found.b]].sum()
        return float((agreeing + SHRINK * share) / (found.weight.sum() + SHRINK))

    def _unrelated(self, rows: Ints, hashes: NDArray[np.uint64]) -> Sample:
        """Pairs of topics with the same hash whose titles have no unit in common."""
        found = sampled(np.unique(hashes, return_inverse=True)[1].astype(np.int64))
        pairs = Sample(rows[found.a], rows[found.b], found.weight)
        return pairs.where(self._corpus.title_units.overlap(pairs.a, pairs.b).shared <= 0)

    def _sums(self, column: str) -> NDArray[np.uint64]:
        """Sums over the parts of each topic, modulo 2**64 (topics,)."""
        sums = np.zeros(len(self._corpus), np.uint64)
        np.add.at(sums, self._parts["row"].to_numpy(), self._parts[column].to_numpy())
        return sums
