"""How often different things with the same title agree in parts by chance, estimated from a scope.

What is known to be different are pairs with the same title of which some part contradicts, but for duplicates with an
error. They show how often such pairs would agree in all parts:

- by the product of the shares in which the parts agree in the scope, raised by how much more often topics with
  unrelated titles agree in all parts than that product says: towns and postcodes depend on each other;
- raised once more where titles and parts depend on each other, as names of products and their brands do. It shows in
  the pairs of which exactly one part contradicts: their number, times the odds that the part agrees, is how many agree
  in all (capture and recapture: Lincoln 1930). The part must be independent of the others, so only those count that
  agree about as often in the scope as where the rest agrees and as where the title is the same. Duplicates with an
  error in the part raise the estimate, and few pairs make it uncertain, so the part with the most such pairs decides.

Duplicates with an error may be far more than things that share a title. Sources without duplicates have none: their own
pairs with the same title are different things, and over two sources as many are to be expected, by their sizes. What
contradicts in them may be left out or written otherwise in another source, so a part counts as often as it is compared
over two sources.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memstate_core.revise.matching.blocking import compatible
from memstate_core.revise.matching.corpus import Corpus
from memstate_core.revise.matching.nearest import Ints
from memstate_core.revise.matching.parts import Reals, Sample, agreements, counted, sampled
from memstate_core.revise.matching.sources import Origins

INDEPENDENT = 2.0
"""How much more often than in the scope a part may agree among pairs that agree elsewhere to count as independent."""
SHRINK = 10.0
"""How many pairs the share of a part in the scope counts for, beside its share among some pairs."""
CERTAIN = 1 - 1e-9
TIED = 1e-9
"""Nats within which pairs are as surprising as each other."""


@dataclass(frozen=True)
class Chance:
    """How often different things with the same title agree by chance.

    Attributes:
        shares: the logarithm of the share of pairs that agree in each part (columns name, log).
        dependence: the logarithm of how much more often all parts agree than their shares say.
        agreement: for pairs of different things, the logarithm of the share of pairs that agree in all parts which the
            two have (different,).
        topics: positions of one of the two (different,).
        expected: how many pairs that agree in all parts each of them stands for (different,).
        namesakes: the share of pairs of different things, of those with the same title and parts in common.
    """

    shares: pl.DataFrame
    dependence: float
    agreement: Reals
    topics: Ints
    expected: Reals
    namesakes: float

    def expected_from(self, surprise: Reals, common: Reals) -> Reals:
        """How many pairs agree by chance that are at least as surprising as each of some (pairs,).

        The next less surprising pair of different things counts, too, as in a target-decoy estimate (Levitsky et al.
        2017): that none is as surprising may itself be chance.

        Args:
            surprise: nats by which it is surprising to find each pair (pairs,).
            common: the logarithm of how common the title of each topic is (topics,).
        """
        own = self.agreement + common[self.topics] - TIED
        order = np.argsort(own, kind="stable")
        sums = np.cumsum(self.expected[order])
        return np.asarray(sums[np.minimum(np.searchsorted(own[order], -surprise, "right"), len(sums) - 1)])

    def agreement_of(self, agreed: pl.DataFrame, count: int) -> Reals:
        """The logarithm of the share of pairs that agree in as much as each of some (pairs,).

        Args:
            agreed: the parts in which pairs agree (columns pair, name).
            count: how many pairs there are.
        """
        return _joint(agreed.join(self.shares, on="name"), self.dependence, count)


def chance_of(
    corpus: Corpus,
    parts: pl.DataFrame,
    titles: Ints,
    varying: pl.Series | None = None,
    clean: Origins | None = None,
) -> Chance | None:
    """How often different things agree by chance; None where no topics with the same title are seen to be different.

    Pairs count as different if a part contradicts, or if they have parts in common but agree in none.

    Args:
        corpus: the topics.
        parts: their parts (columns as of `parts_of`).
        titles: equal for topics with the same title (topics,).
        varying: names of parts that vary among duplicates; where only one of them contradicts, that says nothing.
        clean: the sources, where the pairs of those without duplicates show what different things over two of them
            agree in; by default all pairs show it for all.
    """
    sample = sampled(titles)
    sample = sample.where(compatible(corpus, sample.candidates))
    seen, shares = agreements(corpus, parts, sample.a, sample.b), _shares(parts)
    if clean is not None:
        sample, seen, shares = _within_clean(sample, seen, shares, clean)
    size = len(sample.a)
    varies = ~pl.col("agree") & ~pl.col("contradict")
    agreeing, common = counted(seen.filter("agree"), size), counted(seen, size)
    contradicted = counted(seen.filter("contradict"), size) > 0
    different = contradicted | ((common > 0) & (agreeing == 0))
    if not different.any():
        return None
    alike = _Alike(corpus, parts)
    dependence, logs = alike.dependence(shares), seen.join(shares, on="name")
    weight = np.where(different, sample.weight, 0.0)
    comparable = corpus.summarised[sample.a] == corpus.summarised[sample.b]
    whole = _factor(_joint(logs, dependence, size), _joint(logs, dependence, size, "across"))
    rows = seen["pair"].to_numpy()
    described = seen.with_columns(
        others=pl.Series((common - agreeing)[rows]) - (~pl.col("agree")).cast(pl.Int64),
        weight=pl.Series(sample.weight[rows]),
        base=pl.Series((weight * whole)[rows]),
        comparable=pl.Series(comparable[rows]),
    )
    chosen = described if varying is None else described.filter(~pl.col("name").is_in(varying.implode()))
    raised = float(np.log(_raised(chosen, shares, alike)))
    caps = _of_title(described, shares).join(shares, on="name")
    logs = logs.join(
        caps.select("name", cap=pl.col("share").log(), cap_across=_across(pl.col("share")).log()), on="name"
    )
    varied = contradicted & (counted(seen.filter(varies), size) > 0)
    agreement, expected = [], []
    for among, some in ((different, logs), (varied, logs.filter(~varies))):
        own, across = (
            (_joint(some, dependence, size, log), _least(some, size, cap))
            for log, cap in (("log", "cap"), ("across", "cap_across"))
        )
        factor = _factor(*(np.minimum(log + raised, cap) for log, cap in (own, across)))
        expected.append((weight * factor)[among])
        agreement.append(across[0][among])
    namesakes = float(weight.sum() / sample.weight[common > 0].sum())
    topics = np.concatenate([sample.a[different], sample.a[varied]])
    return Chance(shares, dependence, np.concatenate(agreement), topics, np.concatenate(expected), namesakes)


def _within_clean(
    sample: Sample, seen: pl.DataFrame, shares: pl.DataFrame, origins: Origins
) -> tuple[Sample, pl.DataFrame, pl.DataFrame]:
    """The pairs within duplicate-free sources, each for as many over two, with what is seen and the shares of parts.

    Args:
        sample: pairs with the same title.
        seen: their parts (columns as of `agreements`).
        shares: columns of `_shares`.
        origins: the sources.
    """
    relations = origins.relations(sample.candidates)
    decided = seen.filter(pl.col("agree") | pl.col("contradict")).select("pair", "name")
    weights = [np.where(some, sample.weight, 0.0) for some in (relations.same, relations.competing)]
    one, other = (
        decided.with_columns(weight=pl.Series(weight[decided["pair"].to_numpy()] / max(weight.sum(), 1.0)))
        .group_by("name")
        .agg(pl.col("weight").sum())
        for weight in weights
    )
    rates = one.join(other, on="name", suffix="_across").filter(pl.col("weight") > 0)
    compared = rates.select("name", rate=(pl.col("weight_across") / pl.col("weight")).clip(0.0, 1.0))
    kept = np.flatnonzero(relations.same)
    within = seen.filter(pl.col("pair").is_in(kept))
    numbered = within.with_columns(pair=pl.Series(np.searchsorted(kept, within["pair"].to_numpy()), dtype=pl.Int64))
    known = shares.drop("compared", "across").join(compared, on="name", how="left")
    adjusted = known.with_columns(compared=pl.col("rate").fill_null(0.0)).drop("rate")
    weighted = Sample(sample.a, sample.b, sample.weight * relations.across_by_same).where(relations.same)
    return weighted, numbered, adjusted.with_columns(across=_across(pl.col("log").exp()).log())


def _across(share: pl.Expr) -> pl.Expr:
    """The share of pairs over two sources that agree in a part or are not compared in it."""
    return 1 - pl.col("compared") * (1 - share)


def _raised(seen: pl.DataFrame, shares: pl.DataFrame, alike: _Alike) -> float:
    """How much more pairs agree than their parts say, since titles and parts depend on each other; at least 1.

    Args:
        seen: columns of `agreements`, others (parts of the pair beside this one that do not agree), weight, base (how
            many equal pairs its pair stands for by the parts alone), comparable (both topics have a summary, or none).
        shares: columns name, log, compared.
        alike: topics that agree in some parts.
    """
    near = pl.col("contradict") & (pl.col("others") == 0) & pl.col("comparable")
    by_part = seen.group_by("name").agg(
        pl.col("base").sum(),
        near=pl.col("weight").filter(near).sum(),
        squares=(pl.col("weight") ** 2).filter(near).sum(),
    )
    shown = by_part.filter(pl.col("base") > 0).join(_of_title(seen, shares), on="name").join(shares, on="name")
    for row in shown.sort(pl.col("near"), "name", descending=[True, False]).iter_rows(named=True):
        share, highest = float(np.exp(row["log"])), row["share"]
        limit = min(INDEPENDENT * share, CERTAIN)
        highest = max(highest, alike.share(row["name"], share)) if highest <= limit else highest
        if highest <= limit:
            upper = row["near"] + 2 * np.sqrt(row["squares"])
            odds = (1 - row["compared"] * (1 - highest)) / (1 - highest)
            return float(max(1.0, upper * odds / row["base"]))
    return 1.0


def _of_title(seen: pl.DataFrame, shares: pl.DataFrame) -> pl.DataFrame:
    """How often parts agree in pairs with the same title that differ elsewhere, or in the scope if that is more.

    Args:
        seen: columns of `agreements`, others, weight.
        shares: columns name, log.

    Returns:
        Columns name, share.
    """
    weight, elsewhere, scope = pl.col("weight"), pl.col("others") > 0, pl.col("log").exp()
    by_part = seen.group_by("name").agg(
        agreeing=weight.filter(elsewhere & pl.col("agree")).sum(), compared=weight.filter(elsewhere).sum()
    )
    of_title = (pl.col("agreeing") + SHRINK * scope) / (pl.col("compared") + SHRINK)
    return by_part.join(shares, on="name").select("name", share=pl.max_horizontal(of_title, scope))


class _Alike:
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


def _shares(parts: pl.DataFrame) -> pl.DataFrame:
    """The logarithm of the share of pairs that agree in a part which both have; one is added.

    Returns:
        Columns name, log, compared (how often the part is compared over two sources, to how often within one), and
        across (the logarithm of the share of pairs that agree or are not compared).
    """
    number = pl.col("len").cast(pl.Float64)
    agree, every = (number * (number - 1)).sum(), number.sum() * (number.sum() - 1)
    shares = parts.group_by("name", "key").len().group_by("name").agg(log=((agree + 1) / (every + 2)).log())
    return shares.with_columns(compared=pl.lit(1.0), across=pl.col("log"))


def _joint(logs: pl.DataFrame, dependence: float, count: int, column: str = "log") -> Reals:
    """The logarithm of the share of pairs that agree in all of some parts: no more than in any one of them (pairs,).

    Args:
        logs: columns pair, and the logarithm of the share of each part.
        dependence: of the parts on each other.
        count: pairs.
        column: the name of the latter.
    """
    independent = np.bincount(logs["pair"].to_numpy(), logs[column].to_numpy(), minlength=count)
    return np.asarray(np.minimum(independent + dependence, _least(logs, count, column)))


def _least(logs: pl.DataFrame, count: int, column: str) -> Reals:
    """The least logarithm of a share among the parts of each pair, 0 without any (pairs,)."""
    least = np.zeros(count)
    np.minimum.at(least, logs["pair"].to_numpy(), logs[column].to_numpy())
    return least


def _factor(own: Reals, across: Reals) -> Reals:
    """How many equal pairs each pair of different things stands for, given the logarithms of two shares.

    Where the two are the same, these are the odds of the share.

    Args:
        own: of pairs within a source that agree in all parts, as those of different things that are seen do not.
        across: of pairs over two sources that do, or are not compared.
    """
    return np.asarray(np.exp(across) / (1 - np.minimum(np.exp(own), CERTAIN)))
