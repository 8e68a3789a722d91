"""What may be merged: probabilities for clustering, lowered where the evidence does not support them.

A pair is merged without further conditions if nothing differs, or if what both topics have in common besides the
title singles them out among all pairs, unless different things agree in as much by chance (`coincidences`). Any other
likely pair relies on the fit. The fit is believed as long as few likely pairs contradict each other: where the store's
likely pairs often turn out to be siblings, some siblings have no visible contradiction, and the run abstains from
merging by probability.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_matrix
from scipy.sparse.csgraph import connected_components

from memstate_core.revise.matching.blocking import Candidates
from memstate_core.revise.matching.contradictions import BY_TITLE, BY_WORDING, MIN_ANCHORS
from memstate_core.revise.matching.corpus import Corpus
from memstate_core.revise.matching.differing_values import Flags
from memstate_core.revise.matching.fellegi_sunter import Scored
from memstate_core.revise.matching.nearest import Ints, pair_products
from memstate_core.revise.matching.siblings import Signs
from memstate_core.revise.matching.sources import SourceRelations
from memstate_core.revise.matching.unit_overlap import BACKGROUND

Reals = NDArray[np.float64]

WITNESSES = 3
"""Topics that a contradicted pair must both likely be the same as, without a contradiction, to count as likely."""
MAX_CONTRADICTED = 0.1
"""The share of likely links that contradict each other up to which the fit is believed. If a sibling without a
visible contradiction is half as frequent as one with it, one in twenty of the other links is wrong there."""
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
    """

    probability: Reals
    contradicted: float
    held_back: Flags


def identical(found: Signs, contradicts: Ints, relations: SourceRelations) -> Flags:
    """Pairs that are the same beyond doubt: nothing differs, or a code of their own names them in two sources."""
    return np.asarray((contradicts == 0) & (found.identical | (found.code & relations.competing)))


def lifted(scored: Scored, same: Flags) -> Scored:
    """Scores, of some pairs raised by LIFT."""
    odds = scored.probability / np.maximum(1 - scored.probability, 1e-12) * np.exp(LIFT)
    raised = np.maximum(scored.probability, odds / (1 + odds))
    return Scored(scored.weight + LIFT * same, np.where(same, raised, scored.probability))


def decide(
    corpus: Corpus,
    found: Signs,
    contradicts: Ints,
    pairs: Candidates,
    relations: SourceRelations,
    probability: Reals,
    *,
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
        probability: of a match, lifted (pairs,).
        apart: pairs that must not be one (pairs,).
        namesakes: pairs that may be namesakes, and so say nothing about duplicates (pairs,).
        by_chance: pairs that may agree by chance (`Coincidences.doubtful`) (pairs,).
        earlier: merges in force that runs made by themselves; each was a link without a contradiction.
        doubted: whether people judged a pair different that the fit would merge: no contradiction is chance then.
        refuted: whether people's answers refute the fit.
        sure: the probability from which a pair is merged.
    """
    free, likely = contradicts == 0, (probability >= sure) & ~apart
    component = _components(pairs, free & likely, len(corpus))
    seen = ~free & likely & (contradicts != BY_WORDING)
    share = _contradicted_share(component, pairs, free & likely, seen, earlier)
    if not doubted:
        share = max(0.0, share - _by_chance(found, free, relations.competing, namesakes, likely))
    same = identical(found, contradicts, relations) & ~by_chance
    fitted = free & likely & ~same & ~by_chance
    singled_out = _singled_out(corpus, component, pairs, fitted)
    believed = share <= MAX_CONTRADICTED and not refuted
    held_back = (fitted & ~singled_out & (not believed)) | (likely & by_chance)
    witnesses = _witnesses(pairs, free & likely, len(corpus))
    joins = free | (witnesses >= WITNESSES)
    limit = np.where(joins & (contradicts != BY_TITLE) & believed & ~by_chance, np.nextafter(sure, 0.0), 0.0)
    starts = same | singled_out | (fitted & believed)
    raised = np.where(free & found.formatted & (witnesses > 0), np.maximum(probability, limit), probability)
    return Decision(np.where(starts, probability, np.minimum(raised, limit)), share, held_back)


def _components(pairs: Candidates, linked: Flags, topics: int) -> Ints:
    """The connected component of each topic (topics,)."""
    links = coo_array((np.ones(linked.sum(), bool), (pairs.a[linked], pairs.b[linked])), shape=(topics, topics))
    return np.asarray(connected_components(links, directed=False)[1], np.int64)


def _witnesses(pairs: Candidates, linked: Flags, topics: int) -> Ints:
    """How many topics are linked to both topics of each pair (pairs,)."""
    a, b = pairs.a[linked], pairs.b[linked]
    entries = np.ones(2 * len(a), np.float32), (np.concatenate([a, b]), np.concatenate([b, a]))
    links = csr_matrix(entries, shape=(topics, topics))
    return pair_products(links, links, pairs.a, pairs.b).round().astype(np.int64)


def _contradicted_share(
    component: Ints, pairs: Candidates, agreeing: Flags, contradicting: Flags, earlier: int
) -> float:
    """Links that join topics only by likely pairs that contradict each other, as a share of all links.

    Links are those of a spanning forest, so that large groups and families count by their topics, not their pairs.
    """
    topics, groups = len(component), int(component.max(initial=-1)) + 1
    families = int(_components(pairs, agreeing | contradicting, topics).max(initial=-1)) + 1
    return (groups - families) / max(1, topics - families + earlier)


def _by_chance(found: Signs, free: Flags, competing: Flags, namesakes: Flags, likely: Flags) -> float:
    """The share of likely pairs that would contradict each other if all of them were duplicates.

    Two sources state single fields differently. Pairs of duplicate-free sources with the same title, or a code of their
    own, show how often: too seldom for a field that varies, but for all fields together as often as siblings might.
    What may be namesakes shows nothing.
    """
    anchors = likely & competing & ~namesakes & (found.equal | found.code)
    if anchors.sum() < MIN_ANCHORS:
        return 0.0
    return float(np.mean(~free[anchors]) * np.mean(competing[likely]))


def _singled_out(corpus: Corpus, component: Ints, pairs: Candidates, asked: Flags) -> Flags:
    """Pairs whose topics share more besides their titles than with any topic outside their component (pairs,).

    The surplus of shared rarity must exceed what chance gives one of all pairs: two logarithms of the topics. What
    a family shares, its other members share as well, so it singles out none of its pairs.
    """
    units, rarity = corpus.beside_title
    weighted = units.multiply(rarity[None, :]).tocsr()
    ends = np.zeros(len(component), bool)
    ends[component[pairs.a[asked]]] = True
    relevant = np.flatnonzero(ends[component[pairs.a]] | ends[component[pairs.b]])
    a, b = pairs.a[relevant], pairs.b[relevant]
    shared = pair_products(weighted, units, a, b)
    outside = component[a] != component[b]
    most = np.zeros(len(component), np.float64)
    for end in (a, b):
        np.maximum.at(most, component[end[outside]], shared[outside])
    surplus = np.zeros(len(pairs), np.float64)
    surplus[relevant] = shared - most[component[a]]
    return np.asarray(asked & (surplus >= 2 * np.log(corpus.peers[pairs.a] + BACKGROUND)))
