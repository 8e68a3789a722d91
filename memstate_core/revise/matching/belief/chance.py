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
over two sources. What hardly ever is separates nothing there, as the platform of a game that two lists name otherwise:
such a pair stands for one that agrees in all that is compared. Where no source is known to be free of duplicates, pairs
within one of which something contradicts show how often nothing would be seen of it over two: two versions of a data
set have one title and one summary, and what one registry calls `release` the other does not state.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from memstate_core.revise.matching.arrays import Ints
from memstate_core.revise.matching.belief.over_sources import OverSources, shown_within, unseen
from memstate_core.revise.matching.belief.part_shares import (
    CERTAIN,
    joint,
    least,
    part_shares,
    share_across,
    stands_for,
)
from memstate_core.revise.matching.belief.unrelated import SHRINK, Unrelated
from memstate_core.revise.matching.candidates.blocking import compatible
from memstate_core.revise.matching.comparison.parts import Reals, agreements, counted, sampled
from memstate_core.revise.matching.corpus import Corpus

INDEPENDENT = 2.0
"""How much more often than in the scope a part may agree among pairs that agree elsewhere to count as independent."""
UNSEEN = 0.9
"""The probability that nothing of what contradicts in a pair is compared over two sources, beyond which it stands for a
pair that agrees in the same parts."""
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
        decoys: whether duplicate-free sources alone show what is different.
        at_most: whether there are no more than expected, since duplicates with an error count as different, too.
    """

    shares: pl.DataFrame
    dependence: float
    agreement: Reals
    topics: Ints
    expected: Reals
    namesakes: float
    decoys: bool
    at_most: bool = False

    def expected_from(self, surprise: Reals, common: Reals) -> Reals:
        """How many pairs agree by chance that are at least as surprising as each of some (pairs,).

        Where duplicate-free sources alone show it, the next less surprising pair of theirs counts, too, as in a
        target-decoy estimate (Levitsky et al. 2017): that none is as surprising may itself be chance.

        Args:
            surprise: nats by which it is surprising to find each pair (pairs,).
            common: the logarithm of how common the title of each topic is (topics,).
        """
        own = self.agreement + common[self.topics] - TIED
        order = np.argsort(own, kind="stable")
        sums = np.concatenate([[0.0], np.cumsum(self.expected[order])])
        count = np.searchsorted(own[order], -surprise, "right") + self.decoys
        return np.asarray(sums[np.minimum(count, len(own))])

    def agreement_of(self, agreed: pl.DataFrame, count: int) -> Reals:
        """The logarithm of the share of pairs that agree in as much as each of some (pairs,).

        Args:
            agreed: the parts in which pairs agree (columns pair, name).
            count: how many pairs there are.
        """
        return joint(agreed.join(self.shares, on="name"), self.dependence, count)


def chance_of(
    corpus: Corpus,
    parts: pl.DataFrame,
    titles: Ints,
    varying: pl.Series | None = None,
    over: OverSources | None = None,
) -> Chance | None:
    """How often different things agree by chance; None where no topics with the same title are seen to be different.

    Pairs count as different if a part contradicts, or if they have parts in common but agree in none.

    Args:
        corpus: the topics.
        parts: their parts (columns as of `parts_of`).
        titles: equal for topics with the same title (topics,).
        varying: names of parts that vary among duplicates; where only one of them contradicts, that says nothing.
        over: which pairs within sources show what different things over two sources agree in; by default all pairs
            show it for all.
    """
    sample = sampled(titles)
    sample = sample.where(compatible(corpus, sample.candidates))
    seen, shares = agreements(corpus, parts, sample.a, sample.b), part_shares(parts)
    if over is not None:
        sample, seen, shares = shown_within(sample, seen, shares, parts, over)
    size = len(sample.a)
    varies = ~pl.col("agree") & ~pl.col("contradict")
    agreeing, common = counted(seen.filter("agree"), size), counted(seen, size)
    contradicted = counted(seen.filter("contradict"), size) > 0
    different = contradicted | ((common > 0) & (agreeing == 0))
    if not different.any():
        return None
    alike = Unrelated(corpus, parts)
    dependence, logs = alike.dependence(shares), seen.join(shares, on="name")
    weight = np.where(different, sample.weight, 0.0)
    namesakes = float(weight.sum() / sample.weight[common > 0].sum())
    if over is not None and not over.clean:
        alike_in, hidden = joint(logs.filter("agree"), dependence, size), weight * unseen(seen, shares, size)
        shown = alike_in[different], sample.a[different], hidden[different]
        return Chance(shares, dependence, *shown, namesakes, decoys=False, at_most=True)
    comparable = corpus.summarised[sample.a] == corpus.summarised[sample.b]
    whole = stands_for(joint(logs, dependence, size), joint(logs, dependence, size, "across"))
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
        caps.select("name", cap=pl.col("share").log(), cap_across=share_across(pl.col("share")).log()), on="name"
    )
    varied = contradicted & (counted(seen.filter(varies), size) > 0)
    agreement, expected = [], []
    for among, some in ((different, logs), (varied, logs.filter(~varies))):
        own, across = (
            (joint(some, dependence, size, log), least(some, size, cap))
            for log, cap in (("log", "cap"), ("across", "cap_across"))
        )
        equal = stands_for(*(np.minimum(log + raised, cap) for log, cap in (own, across)))
        expected.append((weight * equal)[among])
        agreement.append(across[0][among])
    topics = np.concatenate([sample.a[different], sample.a[varied]])
    estimated = Chance(
        shares, dependence, np.concatenate(agreement), topics, np.concatenate(expected), namesakes, over is not None
    )
    if over is None:
        return estimated
    hidden = weight * _hidden(seen, shares, size)
    compared = joint(logs.filter("agree", pl.col("compared") > 0), dependence, size)
    observed = compared[different], sample.a[different], hidden[different]
    few = hidden.sum() <= estimated.expected.sum()
    return estimated if few else Chance(shares, dependence, *observed, namesakes, decoys=True)


def _hidden(seen: pl.DataFrame, shares: pl.DataFrame, count: int) -> Reals:
    """The probability that nothing of what contradicts in each pair is compared over two sources; 0 up to UNSEEN.

    Such pairs are seen to be different and yet agree in what is compared, so where there are many they are a better
    estimate than how often the others would agree.

    Args:
        seen: what is seen of the pairs (columns as of `agreements`).
        shares: columns of `part_shares`.
        count: pairs.
    """
    likely = unseen(seen, shares, count)
    return np.where(likely > UNSEEN, likely, 0.0)


def _raised(seen: pl.DataFrame, shares: pl.DataFrame, alike: Unrelated) -> float:
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
        agreeing=weight.filter(elsewhere & pl.col("agree")).sum(), every=weight.filter(elsewhere).sum()
    )
    of_title = (pl.col("agreeing") + SHRINK * scope) / (pl.col("every") + SHRINK)
    return by_part.join(shares, on="name").select("name", share=pl.max_horizontal(of_title, scope))
