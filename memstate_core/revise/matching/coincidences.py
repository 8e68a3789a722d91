"""Equal pairs that may be so by chance, and which of them are beyond doubt all the same.

Two people may share name, town and year of birth. `chance` estimates how many such pairs to expect. Equal pairs are
taken in the order of how surprising it is that they agree, as long as chance hardly ever gives more than MAX_SHARE of
them. The rest is left to people. Two orders show different pairs to be duplicates: that of what agrees besides the
title, given how many topics have it, and that of the whole, since long titles of rare words are less likely those of
two things. What chance gives counts in the same order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy.special import pdtr

from memstate_core.revise.matching.blocking import Candidates
from memstate_core.revise.matching.chance import Chance, chance_of
from memstate_core.revise.matching.corpus import Corpus
from memstate_core.revise.matching.differing_values import Flags
from memstate_core.revise.matching.earlier_merges import EarlierMerges
from memstate_core.revise.matching.nearest import Ints
from memstate_core.revise.matching.parts import Reals, agreements, counted, parts_of

MAX_SHARE = 0.05
"""The share of equal pairs up to which they may be so by chance."""
CONFIDENCE = 0.95
"""The probability that chance gives no more than that (a Poisson count) in each of two orders."""
SHOWN = 0.5
"""Of pairs with the same title that are seen to be different, the share that must be so without parts in dispute."""
MOST = 0.25
"""The share of pairs without a dispute that must be beyond doubt before parts in dispute count as varying."""


@dataclass(frozen=True)
class Coincidences:
    """Equal pairs that may be so by chance.

    Attributes:
        doubtful: pairs that are not merged for it (pairs,).
        expected: pairs expected by chance among all that would have been merged.
    """

    doubtful: Flags
    expected: float


@dataclass(frozen=True)
class _Equal:
    """Pairs with the same title that would be merged, or that agree and are known to be different.

    Attributes:
        agreed: the parts in which they agree (columns pair, name).
        asked: those that would be merged (equal,).
        topics: one topic of each (equal,).
        described: whether some topic with their title has parts (equal,).
        before: the parts in which pairs agreed that earlier runs merged (columns pair, name).
        merged: the topic that each of these led to (merges,).
        common: the logarithm of how common the title of each topic is, for each of two orders ((topics,) each).
    """

    agreed: pl.DataFrame
    asked: Flags
    topics: Ints
    described: Flags
    before: pl.DataFrame
    merged: Ints
    common: tuple[Reals, Reals]

    def beyond_doubt(self, chance: Chance, among: Flags) -> tuple[Flags, float]:
        """Which of some pairs are beyond doubt, and how many of all are expected by chance."""
        orders = [self._in_order(chance, among, common) for common in self.common]
        return np.logical_or(*(enough for enough, _ in orders)), min(expected for _, expected in orders)

    def _in_order(self, chance: Chance, among: Flags, common: Reals) -> tuple[Flags, float]:
        """The same in one order.

        A pair that agrees in nothing but a title with which other topics state more is different as often as those.
        """
        surprise = -chance.agreement_of(self.agreed, len(self.asked)) - common[self.topics]
        agreeing = counted(self.agreed.join(chance.shares, on="name"), len(among)) > 0
        bare = (~agreeing & self.described) * chance.namesakes
        asked, different = np.flatnonzero(among & self.asked), np.sort(-surprise[among & ~self.asked])
        before = np.sort(chance.agreement_of(self.before, len(self.merged)) + common[self.merged])
        order = asked[np.argsort(-surprise[asked], kind="stable")]
        at = -surprise[order]
        last, known = np.searchsorted(at, at, "right"), np.searchsorted(different, at, "right")
        expected = np.maximum(chance.expected_from(-at, common), known) + np.cumsum(bare[order])[last - 1]
        equal = last + np.searchsorted(before, at, "right")
        fine = np.flatnonzero(pdtr(np.floor(MAX_SHARE * equal), expected) >= CONFIDENCE)
        enough = np.zeros(len(among), bool)
        enough[order[: last[fine[-1]] if len(fine) else 0]] = True
        return enough, float(expected.max(initial=0.0))


def coincidences(
    corpus: Corpus,
    pairs: Candidates,
    asked: Flags,
    identical: Flags,
    apart: Flags,
    competing: Flags,
    earlier: EarlierMerges,
) -> Coincidences:
    """Which pairs with the same title are not beyond doubt, since different things may agree in as much.

    Parts are in dispute if they contradict each other in a pair that would be merged all the same, because they seem to
    vary among duplicates. Such a pair must be beyond doubt without them, a quarter of the pairs without a dispute must
    be so with them, and different things must be seen to differ without them: if hardly anything else separates
    namesakes, nothing shows that these parts vary. Between duplicate-free sources, each with a vocabulary of its own,
    disputes are left to the fit.

    Args:
        corpus: the topics of a scope.
        pairs: the pairs.
        asked: pairs that would be merged (pairs,).
        identical: pairs in which nothing differs (pairs,).
        apart: pairs of which a verdict or a duplicate-free source says that they are different; those in which nothing
            differs agree by chance. Keys say nothing here: most topics have none (pairs,).
        competing: pairs over two sources of which one at least is duplicate-free (pairs,).
        earlier: the merges in force; those of runs count as equal pairs that are beyond doubt.
    """
    doubtful, titles = np.zeros(len(pairs), bool), _title_codes(corpus)
    rows = np.flatnonzero((asked | (apart & identical)) & (titles[pairs.a] == titles[pairs.b]))
    parts = parts_of(corpus)
    chance = chance_of(corpus, parts, titles) if asked[rows].any() else None
    if chance is None:
        return Coincidences(doubtful, 0.0)
    seen = agreements(corpus, parts, pairs.a[rows], pairs.b[rows])
    agreed, disputes = seen.filter("agree"), seen.filter("contradict")
    usable, disputed = (counted(agreed, len(rows)) > 0) | identical[rows], counted(disputes, len(rows)) > 0
    described = np.isin(titles, titles[parts["row"].unique().to_numpy()])
    ends = pairs.a[rows]
    peers = np.log(np.maximum(np.bincount(titles, 1.0 + earlier.absorbed)[titles] - 1.0, 1.0))
    common = peers, peers - corpus.title_units.information
    equal = _Equal(agreed, asked[rows], ends, described[ends], *_before(earlier), common)
    strict, varying = usable & ~disputed, usable & disputed & ~competing[rows] & equal.asked
    enough, expected = equal.beyond_doubt(chance, strict)
    if varying.any():
        names = disputes["name"].unique().sort()
        settled = parts.filter(~pl.col("name").is_in(names.implode()))
        without = chance_of(corpus, settled, titles)
        shown = without is not None and without.namesakes >= SHOWN * chance.namesakes
        if without is not None and shown and enough.sum() >= MOST * (strict & equal.asked).sum():
            vary, more = equal.beyond_doubt(without, strict | varying)
            clean = chance_of(corpus, parts, titles, varying=names) or chance
            enough, expected = equal.beyond_doubt(clean, strict)
            enough, expected = enough | (varying & vary), max(expected, more)
    doubtful[rows] = (strict | varying) & equal.asked & ~enough
    return Coincidences(doubtful, expected)


def _before(earlier: EarlierMerges) -> tuple[pl.DataFrame, Ints]:
    """The parts in which pairs agreed that runs merged (columns pair, name), and the topics they led to (merges,)."""
    merges = earlier.equal.select("merge", "row").unique().sort("merge").with_row_index("pair")
    agreed = earlier.equal.join(merges.select("merge", "pair"), on="merge").select("pair", "name")
    return agreed, merges["row"].to_numpy()


def _title_codes(corpus: Corpus) -> Ints:
    """Equal for titles with the same units; a topic without any has a code of its own (topics,)."""
    names = [" ".join(row) or f" {place}" for place, row in enumerate(corpus.title_units.cut)]
    return np.unique(names, return_inverse=True)[1].astype(np.int64)
