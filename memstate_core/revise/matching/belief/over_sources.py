"""What different things over two sources agree in, as pairs within sources show it.

What contradicts within a source may be left out of another one, or stated under a name or in a notation of its own, so
a part counts as often as it is compared over two sources. Sources without duplicates show it best: all of their pairs
are different things. Within others, pairs of which something contradicts may also be duplicates with an error.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memstate_core.revise.matching.belief.part_shares import share_across, uncompared
from memstate_core.revise.matching.candidates.blocking import Candidates
from memstate_core.revise.matching.comparison.parts import Reals, Sample, counted
from memstate_core.revise.matching.comparison.sources import Origins


@dataclass(frozen=True)
class OverSources:
    """Pairs over two sources, and those within sources that show what different things over two agree in.

    Attributes:
        origins: the sources.
        clean: whether one source of each pair at least is duplicate-free; else none is known to be.
    """

    origins: Origins
    clean: bool

    @property
    def each(self) -> float:
        """How many pairs over two sources there are for each within one."""
        return self.origins.across_by_same if self.clean else self.origins.across_by_others

    def kinds(self, pairs: Candidates) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which pairs are within a source, and which over two ((pairs,) each)."""
        relations = self.origins.relations(pairs)
        if self.clean:
            return relations.same, relations.competing
        return relations.within & ~relations.same, relations.over & ~relations.competing


def shown_within(
    sample: Sample, seen: pl.DataFrame, shares: pl.DataFrame, parts: pl.DataFrame, over: OverSources
) -> tuple[Sample, pl.DataFrame, pl.DataFrame]:
    """The pairs within sources, each for as many over two, with what is seen and the shares of parts.

    Args:
        sample: pairs with the same title.
        seen: their parts (columns as of `agreements`).
        shares: columns of `part_shares`.
        parts: those of topics (columns as of `parts_of`).
        over: which pairs are within sources, and which over two.
    """
    within, across = over.kinds(sample.candidates)
    decided = seen.filter(pl.col("agree") | pl.col("contradict")).select("pair", "name")
    outside = _weights(sample, decided, across)
    if over.clean:
        inside = _weights(sample, decided, within)
        compared = _relative(inside, outside, sample.weight[within].sum(), sample.weight[across].sum())
    else:
        compared = _given_one(outside, parts, sample, across)
    kept = np.flatnonzero(within)
    found = seen.filter(pl.col("pair").is_in(kept))
    numbered = found.with_columns(pair=pl.Series(np.searchsorted(kept, found["pair"].to_numpy()), dtype=pl.Int64))
    known = shares.drop("compared", "across").join(compared, on="name", how="left")
    adjusted = known.with_columns(pl.col("compared").fill_null(0.0).clip(0.0, 1.0))
    weighted = Sample(sample.a, sample.b, sample.weight * over.each).where(within)
    return weighted, numbered, adjusted.with_columns(across=share_across(pl.col("log").exp()).log())


def unseen(seen: pl.DataFrame, shares: pl.DataFrame, count: int) -> Reals:
    """The probability that nothing of what contradicts in each pair is compared over two sources; 0 without (pairs,).

    Args:
        seen: what is seen of the pairs (columns as of `agreements`).
        shares: columns name, compared.
        count: pairs.
    """
    against = seen.filter("contradict")
    return np.where(counted(against, count) > 0, uncompared(against, shares, count), 0.0)


def _weights(sample: Sample, decided: pl.DataFrame, among: NDArray[np.bool_]) -> pl.DataFrame:
    """How many of some pairs agree or contradict in each part (columns name, weight)."""
    weight = np.where(among, sample.weight, 0.0)
    rows = decided.with_columns(weight=pl.Series(weight[decided["pair"].to_numpy()]))
    return rows.group_by("name").agg(pl.col("weight").sum())


def _relative(inside: pl.DataFrame, outside: pl.DataFrame, within: float, across: float) -> pl.DataFrame:
    """How often parts are compared over two sources, to how often within one (columns name, compared).

    Args:
        inside: pairs within sources by part (columns name, weight).
        outside: pairs over two sources by part.
        within: all pairs within sources.
        across: all pairs over two.
    """
    both = inside.filter(pl.col("weight") > 0).join(outside, on="name", suffix="_across")
    one, other = pl.col("weight") / max(within, 1.0), pl.col("weight_across") / max(across, 1.0)
    return both.select("name", compared=other / one)


def _given_one(outside: pl.DataFrame, parts: pl.DataFrame, sample: Sample, across: NDArray[np.bool_]) -> pl.DataFrame:
    """How often a part that one topic of a pair over two sources has is compared (columns name, compared).

    Args:
        outside: pairs over two sources by part (columns name, weight).
        parts: those of topics.
        sample: pairs with the same title.
        across: which of them are over two sources (pairs,).
    """
    pairs = sample.where(across)
    weight = np.tile(pairs.weight, 2)
    ends = pl.DataFrame({"row": np.concatenate([pairs.a, pairs.b]), "has": weight}).group_by("row").agg(pl.sum("has"))
    stated = parts.select("row", "name").unique().join(ends, on="row").group_by("name").agg(pl.sum("has"))
    return stated.join(outside, on="name").select("name", compared=2 * pl.col("weight") / pl.col("has"))
