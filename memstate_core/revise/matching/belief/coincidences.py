"""Equal pairs that may be so by chance, and which of them are beyond doubt all the same.

Two people may share name, town and year of birth. `chance` estimates how many such pairs to expect. Equal pairs are
taken in the order of how surprising it is that they agree, as long as chance hardly ever gives more than MAX_SHARE of
them. The rest is left to people. Two orders show different pairs to be duplicates: that of what agrees besides the
title, given how many topics have it, and that of the whole, since long titles of rare words are less likely those of
two things. What chance gives counts in the same order.

Over duplicate-free sources, their own pairs with the same title show what chance gives. Elsewhere all pairs do, those
of duplicates with an error among them, so more is expected than there is; and over two other sources, so do the pairs
within them, of which one may contradict in what two sources do not have in common.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy.special import pdtr

from memstate_core.revise.matching.arrays import Ints, codes_of
from memstate_core.revise.matching.belief.chance import Chance, chance_of
from memstate_core.revise.matching.belief.over_sources import OverSources
from memstate_core.revise.matching.candidates.blocking import Candidates
from memstate_core.revise.matching.comparison.differing_values import Flags
from memstate_core.revise.matching.comparison.parts import Reals, agreements, counted, parts_of, sampled
from memstate_core.revise.matching.comparison.sources import Origins, SourceRelations
from memstate_core.revise.matching.corpus import Corpus
from memstate_core.revise.matching.earlier_merges import EarlierMerges

MAX_SHARE = 0.05
"""The share of equal pairs up to which they may be so by chance."""
CONFIDENCE = 0.95
"""The probability that chance gives no more than that (a Poisson count) in each of two orders."""
SHOWN = 0.5
"""Of pairs with the same title that are seen to be different, the share that must be so without parts in dispute."""
MIN_WITHIN = 30
"""Pairs with the same title within duplicate-free sources from which on they show what chance gives over two."""
MOST = 0.25
"""The share of pairs without a dispute that must be beyond doubt before parts in dispute count as varying."""


@dataclass(frozen=True)
class Coincidences:
    """Equal pairs that may be so by chance.

    Attributes:
        doubtful: pairs that are not merged for it (pairs,).
        expected: pairs expected by chance among all that would have been merged.
        share: of the equal pairs that are beyond doubt the share that chance gives, in the order in which it is larger;
            over duplicate-free sources where these show it, else of all. 1 where it is not known.
    """

    doubtful: Flags
    expected: float
    share: float = 1.0


@dataclass(frozen=True)
class _Equal:
    """Pairs with the same title that would be merged, or that agree and are known to be different.

    Attributes:
        agreed: the parts in which they agree (columns pair, name).
        asked: those that would be merged (equal,).
        topics: one topic of each (equal,).
        known: how many pairs of different things each stands for; 0 for those that would be merged (equal,).
        described: whether some topic with their title has parts (equal,).
        before: the parts in which pairs agreed that earlier runs merged (columns pair, name).
        merged: the topic that each of these led to (merges,).
        common: the logarithm of how common the title of each topic is, for each of two orders ((topics,) each).
    """

    agreed: pl.DataFrame
    asked: Flags
    topics: Ints
    known: Reals
    described: Flags
    before: pl.DataFrame
    merged: Ints
    common: tuple[Reals, Reals]

    def beyond_doubt(self, chance: Chance, among: Flags) -> tuple[Flags, float, float]:
        """Which of some pairs are beyond doubt, and how many of all, and which share of these, chance gives."""
        flags, expected, shares = zip(*(self._in_order(chance, among, common) for common in self.common), strict=True)
        return np.logical_or(*flags), min(expected), max(shares)

    def _in_order(self, chance: Chance, among: Flags, common: Reals) -> tuple[Flags, float, float]:
        """The same in one order.

        A pair that agrees in nothing but a title with which other topics state more is different as often as those.
        """
        surprise = -chance.agreement_of(self.agreed, len(self.asked)) - common[self.topics]
        agreeing = counted(self.agreed.join(chance.shares, on="name"), len(among)) > 0
        bare = (~agreeing & self.described) * chance.namesakes
        asked, different = (np.flatnonzero(among & some) for some in (self.asked, ~self.asked))
        different = different[np.argsort(-surprise[different], kind="stable")]
        before = np.sort(chance.agreement_of(self.before, len(self.merged)) + common[self.merged])
        order = asked[np.argsort(-surprise[asked], kind="stable")]
        at = -surprise[order]
        last, before_last = (np.searchsorted(some, at, "right") for some in (at, -surprise[different]))
        known = np.concatenate([[0.0], np.cumsum(self.known[different])])[before_last]
        expected = np.maximum(chance.expected_from(-at, common), known) + np.cumsum(bare[order])[last - 1]
        equal = last + np.searchsorted(before, at, "right")
        fine = np.flatnonzero(_seldom(expected, equal, chance.at_most))
        enough = np.zeros(len(among), bool)
        share = 0.0
        if len(fine):
            enough[order[: last[fine[-1]]]] = True
            share = float(expected[fine[-1]] / equal[fine[-1]])
        return enough, float(min(expected.max(initial=0.0), len(asked))), share


def _seldom(expected: Reals, equal: Ints, at_most: bool) -> Flags:
    """Whether chance gives no more than MAX_SHARE of equal pairs: in the mean if that is a bound, else nearly always.

    Args:
        expected: how many are expected (ranks,).
        equal: how many pairs there are (ranks,).
        at_most: whether the former is a bound.
    """
    if at_most:
        return np.asarray(expected <= MAX_SHARE * equal)
    return np.asarray(pdtr(np.floor(MAX_SHARE * equal), expected) >= CONFIDENCE)


@dataclass(frozen=True)
class _Population:
    """Pairs of which chance is estimated together.

    Attributes:
        chosen: these pairs (pairs,).
        different: pairs that were judged different (pairs,).
        same: pairs of one duplicate-free source (pairs,).
        each: how many pairs of different things each of the latter stands for.
        merged: topics whose earlier merges count among them (topics,).
        over: which pairs within sources show what is different; None where all pairs do.
    """

    chosen: Flags
    different: Flags
    same: Flags
    each: float
    merged: Flags
    over: OverSources | None = None

    @property
    def known(self) -> Flags:
        """Pairs that are known to be different things (pairs,)."""
        return np.asarray(self.different | (self.same & (self.each > 0)))

    def counted(self, rows: Ints) -> Reals:
        """How many pairs of different things the pairs at some positions stand for (rows,)."""
        return np.where(self.different[rows], 1.0, self.same[rows] * self.each)


def coincidences(
    corpus: Corpus,
    pairs: Candidates,
    asked: Flags,
    identical: Flags,
    different: Flags,
    origins: Origins,
    relations: SourceRelations,
    earlier: EarlierMerges,
) -> Coincidences:
    """Which pairs with the same title are not beyond doubt, since different things may agree in as much.

    Pairs within sources that are not known to be clean say nothing about pairs over two where each would stand for more
    than there are of them, as where each conversation is a source.

    Args:
        corpus: the topics of a scope.
        pairs: the pairs.
        asked: pairs that would be merged (pairs,).
        identical: pairs in which nothing differs (pairs,).
        different: pairs that were judged different; those in which nothing differs agree by chance, as do those within
            duplicate-free sources. Keys say nothing here: most topics have none (pairs,).
        origins: the sources.
        relations: how those of the pairs relate.
        earlier: the merges in force; those of runs count as equal pairs that are beyond doubt.
    """
    search = _Search(corpus, pairs, identical, earlier)
    competing = relations.competing
    several = np.asarray(origins.member.sum(axis=1)).ravel() > 1
    clean, others = (OverSources(origins, clean=among) for among in (True, False))
    if search.within(clean) < MIN_WITHIN:
        every = np.ones(len(pairs), bool)
        populations = [_Population(every, different, relations.same, 1.0, np.ones(len(corpus), bool))]
    else:
        across = relations.across_by_same
        populations = [
            _Population(competing, different, relations.same, across, several, clean),
            _Population(~competing, different, relations.same, 1.0, ~several),
        ]
    found = [search.of(asked, ~competing, each) for each in populations]
    doubtful, expected = np.any([each.doubtful for each in found], axis=0), sum(each.expected for each in found)
    if search.within(others) >= max(1.0, others.each):
        chosen = relations.over & ~competing
        more = search.of(asked, ~competing, _Population(chosen, different, relations.same, 1.0, several, others))
        doubtful, expected = doubtful | more.doubtful, max(expected, more.expected)
    return Coincidences(doubtful, expected, found[0].share)


class _Search:
    """Looks for coincidences among the pairs of a scope (arguments as of `coincidences`)."""

    def __init__(self, corpus: Corpus, pairs: Candidates, identical: Flags, earlier: EarlierMerges) -> None:
        self._corpus, self._pairs, self._identical, self._earlier = corpus, pairs, identical, earlier
        self._parts, self._titles = parts_of(corpus), _title_codes(corpus)
        peers = np.log(np.maximum(np.bincount(self._titles, 1.0 + earlier.absorbed)[self._titles] - 1.0, 1.0))
        self._common = peers, peers - corpus.title_units.information

    def within(self, over: OverSources) -> int:
        """How many pairs with the same title the sources have that show chance, or how many were sampled."""
        return int(over.kinds(sampled(self._titles).candidates)[0].sum())

    def of(self, asked: Flags, alone: Flags, population: _Population) -> Coincidences:
        """Coincidences among the pairs of a population.

        Parts are in dispute if they contradict each other in a pair that would be merged all the same, because they
        seem to vary among duplicates. Such a pair must be beyond doubt without them, a quarter of the pairs without a
        dispute must be so with them, and different things must be seen to differ without them: if hardly anything else
        separates namesakes, nothing shows that these parts vary. Between duplicate-free sources, each with a vocabulary
        of its own, disputes are left to the fit.

        Args:
            asked: pairs that would be merged (pairs,).
            alone: pairs of which disputes are not left to the fit (pairs,).
            population: the pairs.
        """
        doubtful, titles, pairs = np.zeros(len(self._pairs), bool), self._titles, self._pairs
        agree_by_chance = population.known & self._identical
        chosen = (asked & population.chosen) | agree_by_chance
        rows = np.flatnonzero(chosen & (titles[pairs.a] == titles[pairs.b]))
        wanted = (asked & population.chosen)[rows]
        chance = self._chance(population) if wanted.any() else None
        if chance is None:
            return Coincidences(doubtful, 0.0)
        seen = agreements(self._corpus, self._parts, pairs.a[rows], pairs.b[rows])
        agreed, disputes = seen.filter("agree"), seen.filter("contradict")
        usable = (counted(agreed, len(rows)) > 0) | self._identical[rows]
        disputed = counted(disputes, len(rows)) > 0
        equal = self._equal(rows, wanted, agreed, population)
        strict, varying = usable & ~disputed, usable & disputed & alone[rows] & wanted
        enough, expected, share = equal.beyond_doubt(chance, strict)
        if varying.any():
            names = disputes["name"].unique().sort()
            without = self._chance(population, without=names)
            shown = without is not None and without.namesakes >= SHOWN * chance.namesakes
            if without is not None and shown and enough.sum() >= MOST * (strict & wanted).sum():
                vary, more, most = equal.beyond_doubt(without, strict | varying)
                enough, expected, share = equal.beyond_doubt(self._chance(population, varying=names) or chance, strict)
                enough, expected, share = enough | (varying & vary), max(expected, more), max(share, most)
        doubtful[rows] = (strict | varying) & wanted & ~enough
        return Coincidences(doubtful, expected, share)

    def _chance(
        self, population: _Population, without: pl.Series | None = None, varying: pl.Series | None = None
    ) -> Chance | None:
        """Chance as a population shows it, without some parts, or where some vary among duplicates."""
        parts = self._parts if without is None else self._parts.filter(~pl.col("name").is_in(without.implode()))
        return chance_of(self._corpus, parts, self._titles, varying, population.over)

    def _equal(self, rows: Ints, wanted: Flags, agreed: pl.DataFrame, population: _Population) -> _Equal:
        """The pairs at some positions as equal ones, with the earlier merges of their population."""
        titles, ends, earlier = self._titles, self._pairs.a[rows], self._earlier.equal
        described = np.isin(titles, titles[self._parts["row"].unique().to_numpy()])
        before = earlier.filter(pl.Series(population.merged[earlier["row"].to_numpy()], dtype=pl.Boolean))
        merges = before.select("merge", "row").unique().sort("merge").with_row_index("pair")
        agreed_before = before.join(merges.select("merge", "pair"), on="merge").select("pair", "name")
        return _Equal(
            agreed, wanted, ends, population.counted(rows), described[ends],
            agreed_before, merges["row"].to_numpy(), self._common,
        )  # fmt: skip


def _title_codes(corpus: Corpus) -> Ints:
    """Equal for titles with the same units; a topic without any has a code of its own (topics,)."""
    return codes_of([" ".join(row) or f" {place}" for place, row in enumerate(corpus.title_units.cut)])
