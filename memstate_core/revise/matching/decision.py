"""What may be merged: probabilities for clustering, lowered where the evidence does not support them.

A pair is merged without further conditions if nothing differs, or if what both topics have in common besides the
title singles them out among all pairs, unless different things agree in as much by chance (`coincidences`). Any other
likely pair relies on the fit, which has to be believed (`belief`): else the run abstains from merging by probability.
Where sources without duplicates show that many likely pairs are siblings, only a code of their own makes topics one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from memstate_core.revise.matching.arrays import Codes, Ints, pair_products, weighted
from memstate_core.revise.matching.belief.belief import belief
from memstate_core.revise.matching.belief.decoys import Reals
from memstate_core.revise.matching.belief.links import components, witnesses
from memstate_core.revise.matching.candidates.blocking import Candidates
from memstate_core.revise.matching.comparison.contradictions import BY_TITLE
from memstate_core.revise.matching.comparison.differing_values import Flags
from memstate_core.revise.matching.comparison.siblings import Signs
from memstate_core.revise.matching.comparison.sources import SourceRelations
from memstate_core.revise.matching.corpus import Corpus
from memstate_core.revise.matching.fit.fellegi_sunter import Scored
from memstate_core.revise.matching.texts.unit_overlap import BACKGROUND

WITNESSES = 3
"""Topics that a contradicted pair must both likely be the same as, without a contradiction, to count as likely; one of
a duplicate-free source suffices where the fit is believed of its pairs."""
LIFT = float(np.log(9))
"""What identical topics add to the logit of a pair: even odds become 0.9."""


@dataclass(frozen=True)
class Decision:
    """Probabilities for clustering.

    Titles in the formats of two sources may have little in common. If a third topic is likely the same as both and
    nothing contradicts, such a pair joins the group.

    Attributes:
        probability: of a match, as far as it counts (pairs,).
        contradicted: the share of likely links that contradict each other, less what duplicates do by chance; 0
            without likely pairs.
        held_back: likely pairs on which the run abstains, since the fit is not believed or since they may agree by
            chance (pairs,).
        namesakes: the share of identical pairs over duplicate-free sources that are expected to be of two things.
    """

    probability: Reals
    contradicted: float
    held_back: Flags
    namesakes: float


def identical(found: Signs, contradicts: Codes, relations: SourceRelations) -> Flags:
    """Pairs that are the same beyond doubt: nothing differs, or a code of their own names them in two sources."""
    return np.asarray((contradicts == 0) & (found.identical | (found.code & relations.competing)))


def lifted(scored: Scored, same: Flags) -> Scored:
    """Scores, of some pairs raised by LIFT."""
    weight, probability = scored.weight.copy(), scored.probability.copy()
    before = probability[same]
    odds = before / np.maximum(1 - before, 1e-12) * np.exp(LIFT)
    weight[same] += LIFT
    probability[same] = np.maximum(before, odds / (1 + odds))
    return Scored(weight, probability)


def capped(scored: Scored, some: Flags, most: Reals | float) -> Scored:
    """Scores, with a probability of some pairs that is at most a given one."""
    return Scored(scored.weight, np.where(some, np.minimum(scored.probability, most), scored.probability))


def decide(
    corpus: Corpus,
    found: Signs,
    contradicts: Codes,
    pairs: Candidates,
    relations: SourceRelations,
    scored: Scored,
    *,
    probability: Reals,
    apart: Flags,
    namesakes: Flags,
    by_chance: Flags,
    earlier: int,
    doubted: bool = False,
    refuted: bool,
    sure: float,
) -> Decision:
    """Lowers the probabilities of pairs to what counts in clustering.

    Args:
        corpus: the topics.
        found: signs of the pairs.
        contradicts: which sign keeps each pair from a merge, 0 for none (pairs,).
        pairs: the pairs.
        relations: how their sources relate.
        scored: their scores, lifted.
        probability: of a match, shifted where its threshold differs from `sure` (pairs,).
        apart: pairs that must not be one (pairs,).
        namesakes: pairs that may be namesakes, and so say nothing about duplicates (pairs,).
        by_chance: pairs that may agree by chance (`Coincidences.doubtful`) (pairs,).
        earlier: merges in force that runs made by themselves; each was a link without a contradiction.
        doubted: whether people judged a pair different that the fit would merge: no contradiction is chance then.
        refuted: whether people's answers refute the fit.
        sure: the probability from which a pair is merged.
    """
    free, likely = contradicts == 0, (probability >= sure) & ~apart
    asked = free & likely & ~by_chance
    same = identical(found, contradicts, relations) & ~by_chance
    judged = belief(
        found, contradicts, pairs, relations, scored.weight,
        likely=likely, asked=asked, settled=same | by_chance, namesakes=namesakes,
        earlier=earlier, doubted=doubted, refuted=refuted, sure=sure,
    )  # fmt: skip
    component = components(pairs, free & likely, len(corpus))
    singled_out = _singled_out(corpus, component, pairs, asked & ~same)
    beyond_doubt = (same | singled_out) & (~judged.refuted | found.code)
    starts = beyond_doubt | (asked & judged.believed)
    held_back = likely & free & ~starts
    seen = witnesses(pairs, free & likely, len(corpus))
    joins = ((free | (seen >= WITNESSES)) & judged.believed) | judged.vouched
    joins &= (contradicts != BY_TITLE) & ~by_chance
    limit = np.where(joins, np.nextafter(sure, 0.0), 0.0)
    decided = probability.copy()
    np.maximum(decided, limit, out=decided, where=~starts & free & found.formatted & (seen > 0))
    np.minimum(decided, limit, out=decided, where=~starts)
    return Decision(decided, judged.contradicted, np.asarray(held_back), judged.namesakes)


def _singled_out(corpus: Corpus, component: Ints, pairs: Candidates, asked: Flags) -> Flags:
    """Pairs whose topics share more besides their titles than with any topic outside their component (pairs,).

    The surplus of shared rarity must exceed what chance gives one of all pairs: two logarithms of the topics. What
    a family shares, its other members share as well, so it singles out none of its pairs.
    """
    units, rarity = corpus.beside_title
    ends = np.zeros(len(component), bool)
    ends[component[pairs.a[asked]]] = True
    relevant = np.flatnonzero(ends[component[pairs.a]] | ends[component[pairs.b]])
    a, b = pairs.a[relevant], pairs.b[relevant]
    shared = pair_products(weighted(units, rarity), units, a, b)
    outside = component[a] != component[b]
    most = np.zeros(len(component), np.float64)
    for end in (a, b):
        np.maximum.at(most, component[end[outside]], shared[outside])
    singled_out = np.zeros(len(pairs), bool)
    singled_out[relevant] = shared - most[component[a]] >= 2 * np.log(corpus.peers[a] + BACKGROUND)
    return asked & singled_out
