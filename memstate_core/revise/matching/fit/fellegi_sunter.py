"""The matching model: a probability for each candidate pair, fitted without labels on the store's own pairs.

The model is that of Fellegi and Sunter (1969), fitted by expectation and maximisation (as in Winkler, 1988,
and Splink): each level of each comparison has a probability among matches (m) and among other candidates
(u); log(m / u) is its weight, and the weights add up to the logarithm of the odds. Five additions
keep the fit from drifting:

* the first probabilities are those of the priors, and m is always mixed with what matches look like in general: a
  first u from all candidates would hold the matches, which in small strata can leave no evidence for any match;
* u depends on the stratum of title similarity, since candidates were chosen for their titles or in spite
  of them;
* the weights of a comparison rise with its levels (isotonic regression);
* the weight of all title comparisons together is bounded by the rarity of what the titles share, and titles
  that differ never suffice by themselves, unless a duplicate-free source makes matches compete;
* in a source that does not repeat itself a topic of another source has at most one match, so matches
  compete and take probability from each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl
from msgspec import Struct
from numpy.typing import NDArray

from memstate_core.revise.matching.comparison.comparisons import LEVELS, STRATA, TEXT, Compared, Levels, Places
from memstate_core.revise.matching.comparison.sources import SourceRelations
from memstate_core.revise.matching.fit.patterns import Patterns, cells
from memstate_core.revise.matching.fit.priors import (
    AT_MOST,
    MATCH_RATE,
    TEMPER,
    UNORDERED,
    ceiling,
    level_prior,
    levels_of,
    others_prior,
)

Reals = NDArray[np.float64]

ROUNDS = 25
PRIOR_PAIRS = 50.0
"""Pairs that the prior of m counts for, at least."""
OTHER_PAIRS = 20.0
"""Pairs that the prior of u counts for."""
PRIOR_SHARE = 0.5
"""Pairs that the prior of m counts for with each pair of the data, however many there are."""
RATE_PAIRS = 20.0
"""Pairs that the prior of the match rate counts for."""
RATE_BOUNDS = (1e-5, 0.9)
STRATUM_PAIRS = 20.0
"""Pairs that the u of all strata counts for in each."""
STRATIFIED = ("rank",)
"""Comparisons of the title for which chance differs between strata, as it does for those of other things."""
MAX_WEIGHT = 6.0
_MAX_LOGIT = 25.0


class MatchModel(Struct, frozen=True, kw_only=True):
    """A fitted model.

    Attributes:
        comparisons: names, as in `Compared.names`.
        match_rate: the share of matches among candidates.
        weights: natural logarithms of m / u by comparison, stratum and level.
        pairs: how many candidate pairs it was fitted on.
    """

    comparisons: tuple[str, ...]
    match_rate: float
    weights: list[list[list[float]]]
    pairs: int


@dataclass(frozen=True)
class Scored:
    """Pairs with their scores.

    Attributes:
        weight: the logarithm of the odds of a match, before matches compete (pairs,).
        probability: of a match, in [0, 1] (pairs,).
    """

    weight: Reals
    probability: Reals


def fit(
    compared: Compared,
    relations: SourceRelations,
    different: NDArray[np.bool_],
    merged: pl.DataFrame,
    displaced: float,
) -> MatchModel:
    """Fits the model on all candidate pairs.

    Args:
        compared: what was compared of candidate pairs.
        relations: how their sources relate; pairs within a distinct source are left out.
        different: pairs that are known to be no matches, such as those that people judged different (pairs,).
        merged: agreement levels of pairs that runs or people merged (columns MERGED_LEVELS), which count as candidates.
        displaced: how many candidates the merged topics would have beside these.
    """
    eligible = ~relations.same
    recorded = _merge_counts(compared.names, merged)
    earlier = merged.unique("pair")["probability"]
    candidates = eligible.sum() + earlier.len() + displaced
    scorer = Scorer(compared, relations)
    rate, weights = MATCH_RATE, _weights(compared.names, recorded)
    for _ in range(ROUNDS):
        probability = scorer.scored(rate, weights).probability
        probability[different] = 0.0
        found = probability[eligible].sum() + earlier.sum() + MATCH_RATE * RATE_PAIRS
        rate = float(np.clip(found / (candidates + RATE_PAIRS), *RATE_BOUNDS))
        others = 1 - probability
        for share in (others, probability):
            share *= eligible
        counts = np.stack([scorer.counts(others), scorer.counts(probability)])
        weights = _weights(compared.names, counts.reshape(recorded.shape) + recorded)
    return _model(compared, rate, weights)


def score(model: MatchModel, compared: Compared, relations: SourceRelations) -> Scored:
    """Scores pairs; a comparison that the model does not know adds nothing."""
    return Scorer(compared, relations).scored(model.match_rate, _table(model, compared.names))


class Scorer:
    """Scores pairs by what their comparisons add, which a fit does many times.

    Args:
        compared: what was compared of the pairs.
        relations: how their sources relate.
    """

    def __init__(self, compared: Compared, relations: SourceRelations) -> None:
        is_text = np.isin(compared.names, TEXT)
        self._text, self._other = Patterns(compared, is_text), Patterns(compared, ~is_text)
        self._relations = relations
        self._competing = bool(relations.competing.any())
        bound = ceiling(compared.surprise, compared.same_title)
        self._bound = np.where(relations.competing | relations.same, np.inf, bound)

    def scored(self, rate: float, weights: Reals) -> Scored:
        """The scores.

        Args:
            rate: the share of matches among candidates.
            weights: what each level adds to a pair's weight (comparisons, strata, levels).
        """
        weight = self._text.sums(weights)  # one array for all steps, since there are millions of pairs
        weight += np.log(rate / (1 - rate))
        np.minimum(weight, self._bound, out=weight)
        weight += self._other.sums(weights)
        np.clip(weight, -_MAX_LOGIT, _MAX_LOGIT, out=weight)
        odds = np.exp(weight)
        odds[self._relations.same] = 0.0
        return Scored(weight, _exclusive(odds, self._relations) if self._competing else _shares(odds))

    def counts(self, shares: Reals) -> Reals:
        """How much of the pairs each level has (a flat table by comparison, stratum and level).

        Args:
            shares: how much each pair counts for (pairs,).
        """
        return self._text.counts(shares) + self._other.counts(shares)


def contributions(model: MatchModel, compared: Compared, pair: Places, comparison: Places, level: Levels) -> Reals:
    """What each of some single comparisons adds to the weight of its pair (comparisons made,).

    Args:
        model: the model.
        compared: what was compared of pairs.
        pair: the position of the pair (comparisons made,), and as of `Compared.single`:
        comparison: the position in the names (comparisons made,).
        level: the level (comparisons made,).
    """
    return np.asarray(_table(model, compared.names).ravel()[cells(comparison, compared.stratum[pair], level)])


def _table(model: MatchModel, names: tuple[str, ...]) -> Reals:
    """The weights of some comparisons by stratum and level; 0 where the model does not know one."""
    known = {name: i for i, name in enumerate(model.comparisons)}
    weights = np.asarray(model.weights).reshape(_shape(model.comparisons))
    return np.stack([weights[known[name]] if name in known else np.zeros(weights.shape[1:]) for name in names])


def _shape(names: tuple[str, ...]) -> tuple[int, int, int]:
    """That of a table by comparison, stratum and level."""
    return len(names), len(STRATA) + 1, LEVELS


def _weights(names: tuple[str, ...], counts: Reals) -> Reals:
    """Weights by comparison, stratum and level, from counts of others and matches and the priors."""
    others, matches = counts
    return np.stack([_comparison_weights(*row) for row in zip(names, matches, others, strict=True)])


def _merge_counts(names: tuple[str, ...], merged: pl.DataFrame) -> Reals:
    """Others and matches among merged pairs, by comparison, stratum and level; unknown comparisons are left out."""
    counts = np.zeros((2, len(names), len(STRATA) + 1, LEVELS))
    place = pl.DataFrame({"name": names}, schema={"name": pl.String}).with_row_index("place")
    known = merged.join(place, on="name", maintain_order="left")
    at = tuple(known.select(pl.col("place", "stratum", "level").cast(pl.Int64)).to_numpy().T)
    probability = known["probability"].to_numpy()
    for match, weight in enumerate((1 - probability, probability)):
        np.add.at(counts[match], at, weight)
    return counts


def _comparison_weights(name: str, matches: Reals, others: Reals) -> Reals:
    """Weights by stratum and level of one comparison; its unused levels stay 0."""
    count, prior = levels_of(name), level_prior(name)
    matches, others = matches[:, :count], others[:, :count]
    seen, every = matches.sum(axis=0), (matches + others).sum(axis=0)
    if prior is None:
        prior = (every + 1) / (every.sum() + count)
    strength = max(PRIOR_PAIRS, PRIOR_SHARE * seen.sum())
    m = (seen + strength * prior) / (seen.sum() + strength)
    assumed = prior if name in UNORDERED else others_prior(name)
    pooled = (others.sum(axis=0) + OTHER_PAIRS * assumed) / (others.sum() + OTHER_PAIRS)
    u = pooled[None, :]  # the same for all strata
    if name not in TEXT or name in STRATIFIED:
        u = (others + STRATUM_PAIRS * pooled) / (others.sum(axis=1, keepdims=True) + STRATUM_PAIRS)
    rising = np.log(m / u)
    if name not in UNORDERED:
        rising = _isotonic(rising, every + 1)
    weights = np.zeros((len(others), LEVELS))
    weights[:, :count] = np.clip(rising, -MAX_WEIGHT, MAX_WEIGHT) * TEMPER.get(name, 1.0)
    most = AT_MOST.get(name, ())
    weights[:, : len(most)] = np.minimum(weights[:, : len(most)], most)
    return weights


def _isotonic(rows: Reals, weights: Reals) -> Reals:
    """The nearest rows that do not decrease, by weighted least squares; most rise already."""
    descending = np.flatnonzero((np.diff(rows) <= 0).any(axis=1))
    if len(descending):
        from scipy.optimize import isotonic_regression  # only here: importing it takes a while

        rows[descending] = [isotonic_regression(rows[row], weights=weights).x for row in descending]
    return rows


def _shares(odds: Reals) -> Reals:
    """Probabilities by odds, in their place."""
    return np.divide(odds, 1 + odds, out=odds)


def _exclusive(odds: Reals, relations: SourceRelations) -> Reals:
    """Probabilities where a topic has at most one match in each other distinct source."""
    contested = odds * (relations.a_competes | relations.b_competes)
    places = np.concatenate([relations.rivals_of_a, relations.rivals_of_b])
    total = np.bincount(places, np.tile(contested, 2))
    of_a, of_b = (total[place] - contested for place in (relations.rivals_of_a, relations.rivals_of_b))
    rivals = np.where(relations.a_competes, of_a, 0.0) + np.where(relations.b_competes, of_b, 0.0)
    return np.asarray(odds / (1 + odds + np.maximum(rivals, 0.0)))


def _model(compared: Compared, rate: float, weights: Reals) -> MatchModel:
    return MatchModel(comparisons=compared.names, match_rate=rate, weights=weights.tolist(), pairs=len(compared))


def explained(model: MatchModel) -> Mapping[str, list[list[float]]]:
    """The weights of each comparison by stratum (titles unlike to alike) and level, to four decimals."""
    table = np.asarray(model.weights).reshape(_shape(model.comparisons))
    return {name: table[i, :, : levels_of(name)].round(4).tolist() for i, name in enumerate(model.comparisons)}
