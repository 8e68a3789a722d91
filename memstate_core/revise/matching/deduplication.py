"""Duplicates of a corpus from end to end: candidates, comparisons, sources, model, groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from memstate_core.revise.constraints import Constraints
from memstate_core.revise.matching.answers import FEW_PAIRS, Answers, estimated, kinds, refuted
from memstate_core.revise.matching.arrays import Codes, Ints
from memstate_core.revise.matching.belief.coincidences import Coincidences, coincidences
from memstate_core.revise.matching.candidates.blocking import (
    Candidates,
    compatible,
    joined,
    missing_pairs,
    nearest_neighbours,
    within_groups,
)
from memstate_core.revise.matching.clustering import MAX_COMPONENT, group, in_group
from memstate_core.revise.matching.comparison.compared_pairs import compared_candidates, return_freed_of
from memstate_core.revise.matching.comparison.comparisons import Compared
from memstate_core.revise.matching.comparison.contradictions import BY_TITLE
from memstate_core.revise.matching.comparison.field_names import common_names, with_common_names
from memstate_core.revise.matching.comparison.sources import Origins
from memstate_core.revise.matching.confirmation import confirming, with_confirmed
from memstate_core.revise.matching.corpus import Corpus
from memstate_core.revise.matching.decision import Decision, capped, decide, identical, lifted
from memstate_core.revise.matching.earlier_merges import EarlierMerges
from memstate_core.revise.matching.fit.fellegi_sunter import MatchModel, Scored, fit, score

PROBABLE = 0.5
"""Pairs with at least this probability connect groups, whose remaining pairs are then compared."""


@dataclass(frozen=True)
class Deduplicated:
    """Result of the search.

    Attributes:
        pairs: every pair that was compared.
        compared: agreement levels of the pairs.
        scored: weights and probabilities, those of identical pairs raised.
        identical: pairs that are the same beyond doubt (pairs,).
        chance: pairs that agree in as much as different things do by chance.
        apart: pairs that must not be one (pairs,).
        contradicts: which sign keeps each pair from a merge of its own, as in `contradictions.REASONS` (pairs,).
        decision: the probabilities that count in clustering, and the pairs on which the run abstained.
        groups: a group's number for each topic (topics,).
        model: the fitted model.
        origins: sources of topics, and which are distinct.
        sure: the probability from which a pair is likely.
        kinds: what kind of pair each is, its number in `answers.KINDS` (pairs,).
        reworded: pairs whose titles differ, but not in what they say besides (`Signs.reworded`) (pairs,).
        expected: the probability of the answer `same`, given the answers so far; 0 for pairs kept apart (pairs,).
        confirmed: how many answers confirm pairs that nothing else merges; 0 for others (pairs,).
        field_names: the names under which fields were compared, by the other names that sources have for them.
        sizes: how many topics the group of each topic has, those merged into them before among them (topics,).
    """

    pairs: Candidates
    compared: Compared
    scored: Scored
    identical: NDArray[np.bool_]
    chance: Coincidences
    apart: NDArray[np.bool_]
    contradicts: Codes
    decision: Decision
    groups: Ints
    model: MatchModel
    origins: Origins
    sure: float
    kinds: Codes
    reworded: NDArray[np.bool_]
    expected: NDArray[np.float64]
    confirmed: Ints
    field_names: Mapping[str, str]
    sizes: NDArray[np.float64]

    @property
    def grouped(self) -> NDArray[np.bool_]:
        """Pairs whose topics are in one group (pairs,)."""
        return np.asarray(self.groups[self.pairs.a] == self.groups[self.pairs.b])

    def joins(self, rows: Ints) -> NDArray[np.float64]:
        """How many pairs of topics become one if some pairs of two groups do (rows,)."""
        return np.asarray(self.sizes[self.pairs.a[rows]] * self.sizes[self.pairs.b[rows]])

    @property
    def doubt(self) -> NDArray[np.float64]:
        """The probability that a pair is none, for pairs of one group given the group (pairs,)."""
        doubt, merged = 1 - self.scored.probability, self.grouped
        doubt[merged] = 1 - in_group(self.pairs.a[merged], self.pairs.b[merged], self.scored.probability[merged])
        return doubt


def deduplicate(
    corpus: Corpus,
    constraints: Constraints,
    *,
    sure: float,
    earlier: EarlierMerges | None = None,
    decisive: Callable[[Candidates, NDArray[np.float64]], NDArray[np.float64]] | None = None,
    answers: Answers | None = None,
) -> Deduplicated:
    """Finds the duplicates of a corpus.

    Args:
        corpus: the topics.
        constraints: pairs that are kept apart.
        sure: the probability from which a pair is merged.
        earlier: the merges in force; none by default.
        decisive: shifts the probabilities of pairs whose own threshold differs from `sure`.
        answers: of people about pairs of the corpus; none by default.
    """
    names = common_names(corpus)
    corpus = with_common_names(corpus, names)
    merged, said = earlier or EarlierMerges.none(len(corpus)), answers or Answers.none()
    comparer, seen = compared_candidates(corpus, nearest_neighbours(corpus), merged)
    different = constraints.different(corpus, seen.pairs) | (seen.contradicts == BY_TITLE)
    displaced = merged.displaced(seen.pairs, ~seen.relations.same)
    model = fit(seen.levels, seen.relations, different, merged.levels, displaced)
    scored = score(model, seen.levels, seen.relations)
    more = within_groups(corpus, seen.pairs, scored.probability >= PROBABLE)
    if len(more):
        seen = comparer.extended(seen, more)
        scored = score(model, seen.levels, seen.relations)
    seen = seen.unranked()
    pairs, origins, contradicts = seen.pairs, comparer.origins, seen.contradicts
    return_freed_of(pairs)
    same = identical(seen.signs, contradicts, seen.relations)
    bars = partial(barred, corpus, constraints, origins)
    apart = bars(pairs, scored.weight)
    decided = scored.probability if decisive is None else decisive(pairs, scored.probability)
    asked = (contradicts == 0) & ~apart & (same | (decided >= sure))
    equal = seen.signs.identical & (contradicts == 0)
    judged = constraints.judged_different(corpus, pairs)
    chance = coincidences(corpus, pairs, asked, equal, judged, origins, seen.relations, merged)
    return_freed_of(pairs)
    same &= ~chance.doubtful
    scored = lifted(scored, same)
    decided = scored.probability if decisive is None else decisive(pairs, scored.probability)
    wrong = judged & (contradicts == 0) & ~same & ~chance.doubtful & (decided >= sure)
    decision = decide(
        corpus, seen.signs, contradicts, pairs, seen.relations, scored, probability=decided,
        apart=apart, namesakes=seen.namesakes, by_chance=chance.doubtful, earlier=merged.links, sure=sure,
        doubted=bool(wrong.any()), refuted=refuted(said, int(wrong.sum()), sure),
    )  # fmt: skip
    return_freed_of(pairs)
    scored = capped(scored, same & seen.relations.competing, 1 - min(decision.namesakes, chance.share))
    kind = kinds(seen.levels, contradicts, decision.held_back, origins.first, pairs)
    estimate = estimated(scored.probability, kind, said)
    grouped = partial(_groups, pairs, apart=apart, bars=bars, topics=len(corpus), sure=sure)
    groups = grouped(decision.probability, scored.probability)
    confirmed = np.zeros(len(pairs), np.int64)
    if len(said.same):
        left = ~apart & (np.minimum(decided, scored.probability) >= sure) & _between(pairs, groups, merged)
        confirmed = confirming(corpus, pairs, kind, estimate, left, said, sure=sure)
    if confirmed.any():
        some = confirmed > 0
        scored = capped(scored, some, estimate)
        counted = with_confirmed(pairs, some, decided, decision.probability, topics=len(corpus), sure=sure)
        groups = grouped(counted, scored.probability)
    return Deduplicated(
        pairs, seen.levels, scored, same, chance, apart, contradicts, decision, groups, model, origins, sure, kind,
        seen.signs.reworded, np.where(apart, 0.0, estimate), confirmed, names, _sizes(groups, merged),
    )  # fmt: skip


def _between(pairs: Candidates, groups: Ints, merged: EarlierMerges) -> NDArray[np.bool_]:
    """Pairs of two groups that are so small that it makes no difference to the order of questions (pairs,)."""
    sizes = _sizes(groups, merged)
    return np.asarray((groups[pairs.a] != groups[pairs.b]) & (sizes[pairs.a] * sizes[pairs.b] <= FEW_PAIRS))


def _sizes(groups: Ints, merged: EarlierMerges) -> NDArray[np.float64]:
    """How many topics the group of each topic has, those merged into them before among them (topics,)."""
    return np.asarray(np.bincount(groups, 1.0 + merged.absorbed)[groups], np.float64)


def barred(
    corpus: Corpus, constraints: Constraints, origins: Origins, pairs: Candidates, weight: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Which pairs must not become one: kept apart, of one duplicate-free source, or of two kinds (pairs,).

    Args:
        corpus: the topics.
        constraints: pairs that are kept apart.
        origins: the sources.
        pairs: the pairs.
        weight: the logarithm of the odds of a match (pairs,).
    """
    kept_apart = constraints.apart(corpus, pairs, weight) | origins.same(pairs)
    return np.asarray(kept_apart | ~compatible(corpus, pairs))


def _groups(
    pairs: Candidates,
    probability: NDArray[np.float64],
    recorded: NDArray[np.float64],
    apart: NDArray[np.bool_],
    bars: Callable[[Candidates, NDArray[np.float64]], NDArray[np.bool_]],
    *,
    topics: int,
    sure: float,
) -> Ints:
    """Groups in which no pair is barred, including pairs that were never compared, such as those of two kinds.

    Clusters, checks the pairs inside the clusters that were not compared, and repeats while any is barred.
    """
    while True:
        groups = group(pairs, probability, recorded, apart, topics=topics, sure=sure)
        unseen = missing_pairs(groups, pairs, at_most=MAX_COMPONENT)
        kept = unseen.where(bars(unseen, np.full(len(unseen), -np.inf)))
        if not len(kept):
            return groups
        pairs = joined(pairs, kept)
        nothing = np.zeros(len(kept))
        probability, recorded = np.append(probability, nothing), np.append(recorded, nothing)
        apart = np.append(apart, np.ones(len(kept), bool))
