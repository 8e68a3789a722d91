"""Duplicate-free sources, estimated from the store.

A catalogue, a CRM export or a curated list usually has one record per thing. If a source repeated itself as
often as it repeats others, the share of its best-agreeing pairs that lie within it would be the share expected
by chance. A source with far fewer such pairs is treated as duplicate-free (`distinct`). Sources with too few
topics for an estimate are pooled. What agrees best depends on the ranking. By titles, things of one title within a
source come first, such as editions of a book; so pairs with such titles are also ranked by their fields. That puts
pairs within a source with gaps or errors last. So a source is not distinct, either, if it holds its share of plain
repeats: pairs with the same title in which no field contradicts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from memstate_core.revise.matching.arrays import Floats, Ints, dense_ranks, pair_products, weighted
from memstate_core.revise.matching.candidates.blocking import Candidates
from memstate_core.revise.matching.comparison.comparisons import Compared, Places
from memstate_core.revise.matching.corpus import NONE, Corpus

DEPTHS = (50, 100, 200, 400, 800, 1600)
"""Numbers of best pairs of a source to examine; the depth with the lowest bound decides."""
MAX_SHARE = 0.35
"""A source is distinct if the upper confidence bound of its share of internal pairs, relative to chance, is lower."""
FIRST = 3.0
"""The highest score of a pair by titles (`Compared.rankings`)."""
MIN_NAMESAKES = 100
"""Pairs within sources with the same title and a field that contradicts, from which on fields rank pairs, too."""


@dataclass(frozen=True)
class Origins:
    """The sources of topics, and which of them are free of duplicates.

    Attributes:
        member: which topics have evidence from which source, CSR (topics, sources); empty rows where some
            evidence names none.
        share: the upper bound of each source's share of internal pairs, relative to chance; NaN where there is too
            little data, however its plain repeats compare with chance (sources,).
    """

    member: Any
    share: NDArray[np.float64]

    @property
    def first(self) -> Ints:
        """The first source of each topic, NONE where it has none (topics,)."""
        return _first_source(self.member)

    @property
    def distinct(self) -> NDArray[np.bool_]:
        """Which sources were found to have no duplicates of their own (sources,)."""
        return np.asarray(self.share < MAX_SHARE)

    def relations(self, pairs: Candidates) -> SourceRelations:
        """How the sources of both topics relate, for each pair."""
        known, clean = self.first != NONE, self._of_distinct
        shared = _in_common(self.member, pairs)
        across = known[pairs.a] & known[pairs.b] & ~shared
        rivals_of_a, rivals_of_b = self._rivals(pairs)
        return SourceRelations(
            same=self.same(pairs),
            a_competes=across & clean[pairs.b],
            b_competes=across & clean[pairs.a],
            rivals_of_a=rivals_of_a,
            rivals_of_b=rivals_of_b,
            distinct=int(self.distinct.sum()),
            within=shared,
            over=across,
            across_by_within=self.across_by_within,
            across_by_same=self.across_by_same,
            opportunities=self.opportunities,
        )

    def same(self, pairs: Candidates) -> NDArray[np.bool_]:
        """Pairs from one distinct source, so not duplicates (pairs,)."""
        return _in_common(weighted(self.member, self.distinct), pairs)

    @property
    def _of_distinct(self) -> NDArray[np.bool_]:
        """Topics whose first source is distinct (topics,)."""
        first = self.first
        return np.asarray((first != NONE) & self.distinct[np.maximum(first, 0)])

    def _rivals(self, pairs: Candidates) -> tuple[Places, Places]:
        """`SourceRelations.rivals_of_a` and `rivals_of_b`; zeros without a distinct source, where nothing competes."""
        if not self.distinct.any():
            nothing = np.zeros(len(pairs), np.int32)
            return nothing, nothing
        (topics, sources), first = self.member.shape, np.maximum(self.first, 0)
        places = [end * sources + first[other] for end, other in ((pairs.a, pairs.b), (pairs.b, pairs.a))]
        rivals = dense_ranks(np.concatenate(places), topics * sources).astype(np.int32)
        return rivals[: len(pairs)], rivals[len(pairs) :]

    @property
    def opportunities(self) -> float:
        """Topics, counted once for each other source they may have a counterpart in; one of both is distinct."""
        sizes, others = self._sizes, int((~self.distinct).sum())
        return float(sizes.sum() * (len(sizes) - 1) - sizes[~self.distinct].sum() * (others - 1))

    @property
    def across(self) -> float:
        """How many pairs over two sources there are of which one at least is distinct."""
        sizes = self._sizes
        others = sizes[~self.distinct]
        return float((sizes.sum() ** 2 - (sizes**2).sum() - others.sum() ** 2 + (others**2).sum()) / 2)

    @property
    def across_by_within(self) -> float:
        """These pairs for each pair within one source; 0 without."""
        return _by_pairs_within(self.across, self._sizes)

    @property
    def across_by_same(self) -> float:
        """These pairs for each pair within a distinct source; 0 without."""
        return _by_pairs_within(self.across, self._sizes[self.distinct])

    @property
    def across_by_others(self) -> float:
        """Pairs over two sources of which none is distinct, for each pair within one of these; 0 without."""
        sizes = self._sizes[~self.distinct]
        return _by_pairs_within(float((sizes.sum() ** 2 - (sizes**2).sum()) / 2), sizes)

    @property
    def _sizes(self) -> NDArray[np.float64]:
        """How many topics each source has (sources,)."""
        return np.asarray(self.member.sum(axis=0), np.float64).ravel()


@dataclass(frozen=True)
class SourceRelations:
    """How the sources of the two topics of each pair relate.

    Attributes:
        same: both from one distinct source, so not duplicates (pairs,).
        a_competes: b's source is distinct, so that a has at most one match in it (pairs,).
        b_competes: the same of a's source and b (pairs,).
        rivals_of_a: the number of the competition between a and the topics of b's source (pairs,).
        rivals_of_b: the number, in the same numbering, of that between b and the topics of a's source (pairs,).
        distinct: how many sources are distinct.
        within: both have evidence from one source (pairs,).
        over: both have a source, and none in common (pairs,).
        across_by_within: how many pairs over two sources of which one at least is distinct there are in all, for each
            pair within one source.
        across_by_same: the same for each pair within a distinct source.
        opportunities: how often a topic may have a counterpart in another source, of which one at least is distinct.
    """

    same: NDArray[np.bool_]
    a_competes: NDArray[np.bool_]
    b_competes: NDArray[np.bool_]
    rivals_of_a: Places
    rivals_of_b: Places
    distinct: int
    within: NDArray[np.bool_]
    over: NDArray[np.bool_]
    across_by_within: float
    across_by_same: float
    opportunities: float

    @property
    def competing(self) -> NDArray[np.bool_]:
        """Pairs over two sources of which one at least is distinct (pairs,)."""
        return np.asarray(self.a_competes | self.b_competes)


def _in_common(member: Any, pairs: Candidates) -> NDArray[np.bool_]:
    """Pairs of which both topics have evidence from one source (pairs,).

    Args:
        member: which topics have evidence from which source, CSR (topics, sources).
        pairs: the pairs.
    """
    return np.asarray(pair_products(member, member, pairs.a, pairs.b) > 0)


def _by_pairs_within(pairs: float, sizes: NDArray[np.float64]) -> float:
    """How many pairs there are for each within one of sources of these sizes; 0 without."""
    within = float((sizes * (sizes - 1)).sum() / 2)
    return pairs / within if within > 0 else 0.0


def rankings(corpus: Corpus, pairs: Candidates, compared: Compared, contradicted: Floats) -> NDArray[np.float64]:
    """Ways to rank pairs by agreement: by titles and texts, and where sources have many things of one title by fields.

    Args:
        corpus: the topics.
        pairs: candidate pairs.
        compared: how they agree.
        contradicted: the share of their fields that contradict each other, of pairs with contained titles (pairs,).

    Returns:
        Scores (rankings, pairs).
    """
    source = _first_source(_membership(corpus))
    within = (source[pairs.a] == source[pairs.b]) & (source[pairs.a] != NONE)
    if (within & compared.same_title & (contradicted > 0)).sum() < MIN_NAMESAKES:
        return compared.rankings
    by_fields = compared.rankings[0] + FIRST * compared.contained * (1 - contradicted)
    return np.vstack([compared.rankings, by_fields])


def learn_origins(
    corpus: Corpus, pairs: Candidates, rankings: NDArray[np.float64], repeats: NDArray[np.bool_], absorbed: Ints
) -> Origins:
    """Estimates which sources repeat themselves.

    Pairs that earlier runs merged count as the best ones. A single source has all its pairs within it, so nothing is
    known about it.

    Args:
        corpus: the topics.
        pairs: candidate pairs.
        rankings: ways to rank pairs by agreement (rankings, pairs); the one with the lowest bound decides.
        repeats: pairs with the same title in which nothing contradicts (pairs,).
        absorbed: how many topics earlier runs merged into each topic (topics,).
    """
    member = _membership(corpus)
    source, count = _first_source(member), member.shape[1]
    if count == 1:
        return Origins(member, np.full(count, np.nan))
    merged = _merged_pairs(member, absorbed)
    best = [pl.concat([merged, _best_pairs(source, pairs, ranking)]) for ranking in rankings]
    share = _shares(corpus, member, np.arange(count), best)[:count]
    unsure = np.isnan(share)
    rest = _shares(corpus, member, np.where(unsure, count, np.arange(count)), best)[-1]
    bound = np.where(unsure, rest, share)
    plain = _repeated_share(corpus, member, pairs.where(repeats), merged)
    return Origins(member, np.where(np.isnan(bound), np.nan, np.fmax(bound, plain)))


def _repeated_share(corpus: Corpus, member: Any, repeated: Candidates, merged: pl.DataFrame) -> NDArray[np.float64]:
    """A lower bound of each source's share of internal pairs among repeats, relative to chance (sources,).

    NaN for sources without such a pair. About two standard deviations of a Poisson count are subtracted.

    Args:
        corpus: the topics.
        member: which topics have evidence from which source, CSR (topics, sources).
        repeated: plain repeats.
        merged: sources of pairs that were repeats before earlier runs merged them (columns a, b).
    """
    source, count = _first_source(member), member.shape[1]
    one = np.concatenate([source[repeated.a], merged["a"].to_numpy()])
    other = np.concatenate([source[repeated.b], merged["b"].to_numpy()])
    known = (one != NONE) & (other != NONE)
    one, other = one[known], other[known]
    within = np.bincount(one[one == other], minlength=count)
    ends = np.bincount(one, minlength=count) + np.bincount(other, minlength=count) - within
    chances = _chances(corpus, member, np.arange(count))
    chance = np.full(count, np.nan)
    chance[chances["party"].to_numpy()] = chances["chance"].to_numpy()
    lower = within - 2 * np.sqrt(within)
    return np.asarray(np.divide(lower, ends * chance, out=np.full(count, np.nan), where=ends * chance > 0))


def _merged_pairs(member: Any, absorbed: Ints) -> pl.DataFrame:
    """Sources of the pairs that were merged into each topic (columns a, b, tie).

    Its first source pairs with each of its others, and with itself for what was merged beyond that. All of them tie.
    """
    first = _first_source(member)
    rows, columns = (ends.astype(np.int64) for ends in member.nonzero())
    rank = np.arange(len(rows)) - np.searchsorted(rows, rows)
    across = (rank > 0) & (rank <= absorbed[rows])
    within = np.where(first != NONE, absorbed - np.bincount(rows[across], minlength=len(first)), 0)
    topic = np.concatenate([rows[across], np.repeat(np.arange(len(first)), within)])
    other = np.concatenate([columns[across], np.repeat(first, within)])
    return pl.DataFrame({"a": first[topic], "b": other, "tie": np.zeros(len(topic), np.int64)})


def _membership(corpus: Corpus) -> Any:
    codes = corpus.sources["source"].rank("dense").cast(pl.Int64).to_numpy() - 1
    shape = (len(corpus), int(codes.max(initial=0)) + 1)
    return csr_matrix((np.ones(len(codes), np.float32), (corpus.sources["row"].to_numpy(), codes)), shape=shape)


def mutual_best(pairs: Candidates, score: NDArray[np.float64], topics: int) -> NDArray[np.bool_]:
    """Pairs of which each topic is the other's best (pairs,)."""
    best = np.full(topics, -np.inf)
    for end in (pairs.a, pairs.b):
        np.maximum.at(best, end, score)
    return np.asarray((score >= best[pairs.a]) & (score >= best[pairs.b]))


def _first_source(member: Any) -> Ints:
    """The first source of each topic, NONE where it has none (topics,)."""
    has = np.diff(member.indptr) > 0
    first = np.full(member.shape[0], NONE, np.int64)
    first[has] = member.indices[member.indptr[:-1][has]]
    return first


def _best_pairs(source: Ints, pairs: Candidates, score: NDArray[np.float64]) -> pl.DataFrame:
    """Pairs of which each topic is the other's best, the best first (columns a, b: the sources of both; tie)."""
    among = (source[pairs.a] != NONE) & (source[pairs.b] != NONE)
    some, ranked = pairs.where(among), score[among]
    mutual = np.flatnonzero(mutual_best(some, ranked, len(source)))
    order = mutual[np.argsort(-ranked[mutual], kind="stable")]
    tie = pl.Series(-ranked[order], dtype=pl.Float64).round(9).rank("dense").cast(pl.Int64)
    return pl.DataFrame({"a": source[some.a[order]], "b": source[some.b[order]], "tie": tie})


def _shares(corpus: Corpus, member: Any, party_of: Ints, best: list[pl.DataFrame]) -> NDArray[np.float64]:
    """The upper bound of the share within a source, over chance, of the best pairs with an end in a party.

    Args:
        corpus: the topics.
        member: which topics have evidence from which source, CSR (topics, sources).
        party_of: the party that each source belongs to: its own number, or that of a pool (sources,).
        best: rankings of pairs (columns a, b: their sources; tie, the same for pairs that agree equally well).

    Returns:
        The lowest bound over depths and rankings; NaN where so few pairs have an end in the party that even
        no internal pair would give a bound below MAX_SHARE (sources and a pool,).
    """
    counted = pl.concat([_counted(ranked, party_of) for ranked in best])
    counts = counted.join(_chances(corpus, member, party_of), on="party")
    expected = pl.col("depth") * pl.col("chance")
    upper = (upper_bound(pl.col("count")) / expected).min()
    decidable = (upper_bound(pl.lit(0)) / expected).min() < MAX_SHARE
    judged = counts.group_by("party").agg(share=upper, decidable=decidable).filter("decidable")
    shares = np.full(len(party_of) + 1, np.nan)
    shares[judged["party"].to_numpy()] = judged["share"].to_numpy()
    return shares


def upper_bound(count: Any) -> Any:
    """An upper bound of the mean of what was counted once: about two standard deviations of a Poisson count.

    Args:
        count: a number or an expression, of whose kind the bound is.
    """
    return count + 2 + 2 * (count + 1) ** 0.5


def _counted(ranked: pl.DataFrame, party_of: Ints) -> pl.DataFrame:
    """How many of a party's best pairs lie within a source (columns party, depth, count), at each of DEPTHS.

    Of pairs that tie across a depth, the mean counts: their order would be that of ids.
    """
    a, b = ranked["a"].to_numpy(), ranked["b"].to_numpy()
    within = pl.Series("within", a == b, dtype=pl.Int64)
    ends = [ranked.select("tie", within, party=pl.Series(party_of[end])).with_row_index("at") for end in (a, b)]
    ties = pl.concat(ends).unique(["party", "at"]).group_by("party", "tie").agg(pl.len(), pl.col("within").sum())
    last, passed = (pl.col(name).cast(pl.Float64).cum_sum().over("party") for name in ("len", "within"))
    spans = ties.sort("party", "tie").with_columns(last=last, passed=passed)
    met = spans.join(pl.DataFrame({"depth": DEPTHS}), how="cross")
    missing = pl.col("last") - pl.col("depth")
    met = met.filter((missing >= 0) & (missing < pl.col("len")))
    return met.select("party", "depth", count=pl.col("passed") - missing * pl.col("within") / pl.col("len"))


def _chances(corpus: Corpus, member: Any, party_of: Ints) -> pl.DataFrame:
    """Of a scope's pairs with an end in a party, the share that lies within one source (columns party, chance).

    A merged topic counts once in each of its sources, as its parts did.
    """
    rows, source = (ends.astype(np.int64) for ends in member.nonzero())
    scope = corpus.topics["scope"].gather(rows)
    frame = pl.DataFrame({"scope": scope, "source": source, "party": party_of[source]})
    pairs = pl.col("len").cast(pl.Float64) * (pl.col("len") - 1.0) / 2
    own = frame.group_by("scope", "party", "source").len().group_by("party").agg(own=pairs.sum())
    sized = frame.group_by("scope", "party").len().join(frame.group_by("scope").agg(all=pl.len()), on="scope")
    touching = pairs + pl.col("len").cast(pl.Float64) * (pl.col("all").cast(pl.Float64) - pl.col("len"))
    ends = sized.group_by("party").agg(touching=touching.sum())
    return own.join(ends, on="party").select("party", chance=pl.col("own") / pl.col("touching"))
