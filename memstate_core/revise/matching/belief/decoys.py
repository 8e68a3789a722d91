"""Decoys: pairs within duplicate-free sources, which are different things however much of them agrees.

Likely pairs that contradict each other are siblings, or duplicates of which a source is wrong somewhere. Which they are
is seen within duplicate-free sources: pairs that the fit would take for the same there are siblings, and over two
sources as many are to be expected, in proportion to the sizes (target and decoy: Elias and Gygi 2007). Three things
change that number:

- What contradicts within one source may be left out of the other, or written in another way. Then siblings are not
  seen as such, as often as the fields that contradict cannot be compared over two sources.
- A topic is taken for one of several siblings at most if it is clearly the likeliest.
- It is taken for none if its own counterpart is there, which is likelier: siblings are mistaken for one thing only
  where neither has a counterpart in the other's source.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memstate_core.revise.matching.belief.part_shares import uncompared
from memstate_core.revise.matching.candidates.blocking import Candidates
from memstate_core.revise.matching.comparison.differing_values import Flags
from memstate_core.revise.matching.comparison.sources import SourceRelations, upper_bound

Reals = NDArray[np.float64]


@dataclass(frozen=True)
class HiddenSiblings:
    """How many likely pairs over two sources are siblings of which nothing contradicts.

    Attributes:
        expected: the mean.
        at_most: an upper bound of it.
    """

    expected: float
    at_most: float


def hidden_siblings(
    pairs: Candidates,
    relations: SourceRelations,
    weight: Reals,
    fields: pl.DataFrame,
    linked: Flags,
    *,
    matches: int,
    sure: float,
) -> HiddenSiblings:
    """Estimates hidden siblings from the pairs within duplicate-free sources.

    Args:
        pairs: the pairs.
        relations: how their sources relate.
        weight: the logarithm of the odds of a match (pairs,).
        fields: fields of which both topics have a value (columns as of `Signs.fields`).
        linked: pairs whose titles do not contradict each other, and which are likely, or within a source without
            duplicates (pairs,).
        matches: how many pairs over sources are taken for the same in all.
        sure: the probability from which a pair is likely.
    """
    decoys = relations.same & linked
    if decoys.any():
        decoys &= _rivalled(pairs, np.exp(weight) * relations.same) >= sure
    across = relations.competing & linked
    hidden = _unseen(fields, decoys, across).sum()
    matched = min(1.0, 2 * matches / max(1.0, relations.opportunities))
    each = relations.across_by_same * (1 - matched) ** 2
    return HiddenSiblings(float(hidden * each), float(upper_bound(hidden) * each))


def _unseen(fields: pl.DataFrame, decoys: Flags, across: Flags) -> Reals:
    """The probability that nothing of what contradicts in each decoy could be compared over two sources (decoys,)."""
    seen = fields.filter(pl.col("contradicts") | pl.col("same"), pl.col("pair").is_in(np.flatnonzero(across)))
    compared = seen.group_by("name").agg(compared=pl.len() / max(1, int(across.sum())))
    against = fields.filter("contradicts", pl.col("pair").is_in(np.flatnonzero(decoys)))
    return uncompared(against, compared, len(decoys))[decoys]


def _rivalled(pairs: Candidates, odds: Reals) -> Reals:
    """Probabilities where each topic has at most one match (pairs,)."""
    total = np.bincount(np.concatenate([pairs.a, pairs.b]), np.tile(odds, 2))
    rivals = np.maximum(total[pairs.a], total[pairs.b]) - odds
    return np.asarray(odds / (1 + odds + np.maximum(rivals, 0.0)))
