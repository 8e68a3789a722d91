"""What people's answers about pairs say about other pairs: how likely they are the same, and whether a fit is wrong.

The estimate is a logistic regression of the answers on the logit of the fitted probability and on what kind of pair it
is, with a normal prior around the fitted probability itself (recalibration, as in Platt, 1999). Pairs with one title
have a slope of their own: what differs in them may be what a store's copies differ in. The estimate decides what is
asked; what is merged takes proof (`confirmation`). Pairs judged different that the fit would merge count against it:
where answers refute the fit, a run abstains.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memstate_core.model.frames import Schema, empty
from memstate_core.revise.matching.arrays import Codes, Ints
from memstate_core.revise.matching.candidates.blocking import Candidates
from memstate_core.revise.matching.comparison.comparisons import Compared
from memstate_core.revise.matching.comparison.contradictions import BY_TITLE, REASONS
from memstate_core.revise.matching.corpus import NONE

Reals = NDArray[np.float64]
Flags = NDArray[np.bool_]

RIGHT = 0.95
"""The share of matches among pairs that the fit would merge, which answers may refute, or confirm."""
IMPROBABLE = 0.05
"""The probability of as many answers `different`, if that share were right, below which they refute it; of as few,
below which they confirm that it is higher."""
FEW_PAIRS = 8
"""Pairs of topics up to which it makes no difference to the order of questions how many an answer joins. In small
groups one wrong topic makes much of what an answer joins wrong: asked about first, they cost precision."""
BOUNDS = (-16.0, 8.0)
"""Logits beyond which pairs count as equally unlikely, and as equally likely."""
LEVEL_SPREAD, SLOPE_SPREAD, PART_SPREAD = 2.0, 0.4, 2.0
"""Standard deviations of the prior: of the level, of the slope on the logit, of what each part of a kind adds."""
LEAST_SLOPE = 0.1
"""The least slope on the logit: likelier pairs stay likelier within a kind."""
WAITING: Schema = {"a": pl.String, "b": pl.String, "at": pl.Int64}
"""Pairs of topics that are suggested, and the position of the suggestion among recorded decisions."""
_ROUNDS, _STEP = 30, 2.0
_PLACES = ("", "within", "across")
_TITLE_NUMBER, _ABSTAINED = "title number", "abstained"
_SIGNS = (*REASONS, _TITLE_NUMBER, _ABSTAINED)
_TITLES = ("", "/one title")
KINDS = tuple(f"{sign}/{place}{title}" for sign in _SIGNS for place in _PLACES for title in _TITLES)
"""What keeps a pair from a merge, if anything, whether its topics come from one source or from two, where known, and
whether they have one title."""
_PARTS = np.array(
    [
        [*(sign == one for one in _SIGNS[1:]), *(place == one for one in _PLACES[1:]), title != ""]
        for sign in _SIGNS
        for place in _PLACES
        for title in _TITLES
    ],
    np.float64,
)


@dataclass(frozen=True)
class Sample:
    """Verdicts on pairs in the order of the queue, so that they are a sample of the pairs that waited.

    Verdicts `different` count out of this order, too.

    Attributes:
        probability: of a match, when the pair was suggested (verdicts,).
        kind: its number in KINDS (verdicts,).
        same: whether the verdict was `same`; a skipped pair counts as a different one (verdicts,).
        value: what the answer was worth (`suggestions.suggested`) (verdicts,).
        at: the position of the verdict among recorded decisions, ascending (verdicts,).
        waiting: pairs of topics that are suggested, and since when (columns WAITING); None if all are, for ever.
    """

    probability: Reals
    kind: Ints
    same: Flags
    value: Reals
    at: Ints
    waiting: pl.DataFrame | None

    @classmethod
    def none(cls) -> Sample:
        """No verdicts."""
        nothing, numbers = np.empty(0), np.empty(0, np.int64)
        return cls(nothing, numbers, np.empty(0, bool), nothing, numbers, empty(WAITING))

    def where(self, kept: Flags) -> Sample:
        """Some of the verdicts."""
        flat = ("probability", "kind", "same", "value", "at")
        return replace(self, **{name: getattr(self, name)[kept] for name in flat})


@dataclass(frozen=True)
class Answers:
    """Answers of people about pairs of a scope.

    Attributes:
        probability: of a match, when the pair was suggested (answers,).
        kind: its number in KINDS (answers,).
        same: whether the answer was `same` (answers,).
        sample: those that were given in the order of the queue, and skipped pairs.
    """

    probability: Reals
    kind: Ints
    same: Flags
    sample: Sample

    @classmethod
    def none(cls) -> Answers:
        """No answers."""
        return cls(np.empty(0), np.empty(0, np.int64), np.empty(0, bool), Sample.none())


def kinds(compared: Compared, contradicts: Codes, held_back: Flags, first: Ints, pairs: Candidates) -> Codes:
    """The kind of each pair, its number in KINDS (pairs,).

    Args:
        compared: agreement levels; titles with numbers in conflict are a kind of their own.
        contradicts: which sign keeps the pair from a merge (pairs,).
        held_back: pairs that the run abstains from merging; nothing contradicts in them (pairs,).
        first: the first source of each topic (topics,).
        pairs: the pairs.
    """
    a, b = pairs.a, pairs.b
    conflict = np.zeros(len(a), bool)
    numbers = compared.of("numbers")
    conflict[numbers.pair[numbers.level <= 2]] = True
    sign = np.where((contradicts == BY_TITLE) & conflict, _SIGNS.index(_TITLE_NUMBER), contradicts)
    sign = np.where(held_back, _SIGNS.index(_ABSTAINED), sign)
    known = (first[a] != NONE) & (first[b] != NONE)
    place = np.where(known, np.where(first[a] == first[b], 1, 2), 0)
    return np.asarray((sign * len(_PLACES) + place) * len(_TITLES) + compared.same_title, np.int8)


def estimated(probability: Reals, kind: Ints | Codes, answers: Answers) -> Reals:
    """The probability of the answer `same`, given the answers so far; without any, the fitted one (pairs,).

    Args:
        probability: as the model has it (pairs,).
        kind: numbers in KINDS (pairs,).
        answers: the answers so far.
    """
    if not len(answers.same):
        return probability
    found = _coefficients(_design(answers.probability, answers.kind), answers.same.astype(np.float64))
    return np.where(probability > 0, _logistic(_design(probability, kind) @ found), 0.0)


def _coefficients(x: Reals, said: Reals) -> Reals:
    """The coefficients with the highest posterior density, by Newton's method with bounded steps (columns of x,)."""
    mean = np.zeros(x.shape[1])
    mean[1] = 1.0
    slopes, parts = [SLOPE_SPREAD] * 2, [PART_SPREAD] * (x.shape[1] - 3)
    spread = np.array([LEVEL_SPREAD, *slopes, *parts])
    found = mean.copy()
    for _ in range(_ROUNDS):
        expected = _logistic(x @ found)
        slope = x.T @ (said - expected) - (found - mean) / spread**2
        curvature = (x * (expected * (1 - expected))[:, None]).T @ x + np.diag(spread**-2)
        step = np.linalg.solve(curvature, slope)
        found = found + step * min(1.0, _STEP / max(np.abs(step).max(), 1e-12))
    found[1] = max(found[1], LEAST_SLOPE)
    found[2] = max(found[2], LEAST_SLOPE - found[1])
    return found


def refuted(answers: Answers, wrong: int, sure: float) -> bool:
    """Whether answers refute the fit: too many of the pairs that it would merge are different.

    They are too many if as many would be IMPROBABLE in a sample of pairs of which a share of RIGHT is the same.

    Args:
        answers: the answers so far; likely pairs that are the same count as right, whatever contradicted in them.
        wrong: how many pairs that people judged different the fit would merge.
        sure: the probability from which a pair is likely.
    """
    from scipy.special import bdtr  # only here: importing it takes a while

    right = int((answers.same & (answers.probability >= sure)).sum())
    return bool(bdtr(float(right), right + wrong, RIGHT) < IMPROBABLE)


def _design(probability: Reals, kind: Ints | Codes) -> Reals:
    """Ones, the logit, the same for pairs with one title alone, and the parts of the kind (pairs, 3 + parts)."""
    inside = np.clip(probability, 1e-9, 1 - 1e-9)
    logit = np.clip(np.log(inside) - np.log1p(-inside), *BOUNDS)
    parts = _PARTS[kind]
    one_title = parts[:, -1]
    return np.column_stack([np.ones(len(logit)), logit, logit * one_title, parts])


def _logistic(logit: Reals) -> Reals:
    return np.asarray(1 / (1 + np.exp(-logit)))
