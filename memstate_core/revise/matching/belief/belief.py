"""Whether the fit is believed: how many of the likely pairs are siblings, by what contradicts and by decoys.

Where likely pairs often contradict each other, there are siblings of which nothing contradicts, too. Sources without
duplicates say more: they show whether the contradictions are siblings or errors (`decoys`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from memstate_core.revise.matching.arrays import Codes
from memstate_core.revise.matching.belief.decoys import Reals, hidden_siblings
from memstate_core.revise.matching.belief.links import components, witnesses
from memstate_core.revise.matching.candidates.blocking import Candidates
from memstate_core.revise.matching.comparison.contradictions import BY_TITLE, BY_WORDING
from memstate_core.revise.matching.comparison.differing_values import Flags
from memstate_core.revise.matching.comparison.siblings import Signs
from memstate_core.revise.matching.comparison.sources import SourceRelations
from memstate_core.revise.matching.comparison.varying_fields import MIN_ANCHORS

MAX_CONTRADICTED = 0.1
"""The share of likely links that contradict each other up to which the fit is believed. If a sibling without a
visible contradiction is half as frequent as one with it, one in twenty of the other links is wrong there."""
MOST_CONTRADICTED = 1 / 3
"""The share up to which it is believed of pairs over sources whose decoys show few siblings."""
MAX_HIDDEN = 0.05
"""The share of hidden siblings, among pairs that rely on the fit, up to which it is believed; a bound of it counts."""
MOST_HIDDEN = 0.2
"""Their share among all pairs that would be merged, beyond which nothing over these sources is."""


@dataclass(frozen=True)
class Belief:
    """Which pairs the fit is believed of.

    Attributes:
        contradicted: the share of likely links that contradict each other, less what duplicates do by chance; 0
            without likely pairs.
        believed: pairs whose probability counts (pairs,).
        vouched: pairs whose topics are both likely the same as one topic of a duplicate-free source that shows few
            siblings (pairs,).
        refuted: pairs over sources of which decoys show that many are siblings (pairs,).
        namesakes: the share of settled likely pairs over duplicate-free sources that decoys expect to be of two things.
    """

    contradicted: float
    believed: Flags
    vouched: Flags
    refuted: Flags
    namesakes: float


def belief(
    found: Signs,
    contradicts: Codes,
    pairs: Candidates,
    relations: SourceRelations,
    weight: Reals,
    *,
    likely: Flags,
    asked: Flags,
    settled: Flags,
    namesakes: Flags,
    earlier: int,
    doubted: bool,
    refuted: bool,
    sure: float,
) -> Belief:
    """Judges the fit by its likely pairs.

    Args:
        found: signs of the pairs.
        contradicts: which sign keeps each pair from a merge, 0 for none (pairs,).
        pairs: the pairs.
        relations: how their sources relate.
        weight: the logarithm of the odds of a match (pairs,).
        likely: pairs that the fit takes for the same (pairs,).
        asked: those that would be merged (pairs,).
        settled: pairs that do not rely on the fit, since they are identical or may agree by chance (pairs,).
        namesakes: pairs that may be namesakes, and so say nothing about duplicates (pairs,).
        earlier: merges in force that runs made by themselves; each was a link without a contradiction, of topics that
            have a counterpart.
        doubted: whether people judged a pair different that the fit would merge: no contradiction is chance then.
        refuted: whether people's answers refute the fit.
        sure: the probability from which a pair is likely.
    """
    free, competing, topics = contradicts == 0, relations.competing, len(found.titles)
    share = _contradicted_share(pairs, free & likely, ~free & likely & (contradicts != BY_WORDING), earlier, topics)
    if not doubted:
        share = max(0.0, share - _by_chance(found, free, competing, namesakes, likely))
    linked = (likely | relations.same) & (contradicts != BY_TITLE)
    matches, fitted = (int((some & competing).sum()) + earlier for some in (asked, asked & ~settled))
    hidden, equal = (
        hidden_siblings(pairs, relations, weight, found.fields, linked & some, matches=matches, sure=sure)
        for some in (~settled, settled)
    )
    siblings = competing & (hidden.expected > MOST_HIDDEN * matches)
    few = hidden.at_most <= MAX_HIDDEN * fitted
    shown = competing & few & (share <= MOST_CONTRADICTED) & (not refuted)
    vouched = (witnesses(pairs, free & likely & shown, topics) > 0) & ~competing & ~relations.same
    trusted = (share <= MAX_CONTRADICTED) & (not refuted) & ~siblings
    two_things = min(1.0, equal.expected / max(1, int((likely & settled & competing).sum())))
    return Belief(share, np.asarray(trusted | shown), np.asarray(vouched), np.asarray(siblings), two_things)


def _contradicted_share(pairs: Candidates, agreeing: Flags, contradicting: Flags, earlier: int, topics: int) -> float:
    """Links that join topics only by likely pairs that contradict each other, as a share of all links.

    Links are those of a spanning forest, so that large groups and families count by their topics, not their pairs.
    """
    groups, families = (
        int(components(pairs, linked, topics).max(initial=-1)) + 1 for linked in (agreeing, agreeing | contradicting)
    )
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
