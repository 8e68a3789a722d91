"""All that is known of pairs before a model weighs it: agreement, sources, signs, and what contradicts.

The values of all fields of all pairs would take more memory than all else, so pairs are compared in blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from memstate_core.revise.matching.arrays import Codes, Floats
from memstate_core.revise.matching.candidates.blocking import Candidates, joined
from memstate_core.revise.matching.comparison.comparisons import Compared, compare, ranked, together, unranked
from memstate_core.revise.matching.comparison.contradictions import contradiction, namesakes_across
from memstate_core.revise.matching.comparison.differing_values import Flags
from memstate_core.revise.matching.comparison.identifiers import in_common, shared_values
from memstate_core.revise.matching.comparison.siblings import Signs, contradicted, signs
from memstate_core.revise.matching.comparison.siblings import joined as joined_signs
from memstate_core.revise.matching.comparison.sources import Origins, SourceRelations, learn_origins, rankings
from memstate_core.revise.matching.comparison.title_formats import TitleFormats, learn_formats
from memstate_core.revise.matching.corpus import Corpus
from memstate_core.revise.matching.earlier_merges import EarlierMerges
from memstate_core.state.process.memory import return_freed

PAIRS_AT_ONCE = 400_000
"""Pairs of which the values of all fields are in memory at a time: some 200 MiB."""


@dataclass(frozen=True)
class ComparedPairs:
    """Pairs, and what is known of them.

    Attributes:
        pairs: the pairs.
        levels: their agreement, and how each pair ranks among those of its topics.
        signs: that they are siblings.
        relations: how their sources relate.
        namesakes: pairs that may be namesakes (`namesakes_across`) (pairs,).
        contradicts: which sign keeps each pair from a merge of its own, as in `contradictions.REASONS` (pairs,).
    """

    pairs: Candidates
    levels: Compared
    signs: Signs
    relations: SourceRelations
    namesakes: Flags
    contradicts: Codes


@dataclass(frozen=True)
class Comparer:
    """Compares pairs of a corpus, given what its candidates show about its sources.

    Attributes:
        corpus: the topics.
        origins: their sources.
        formats: which fields sources write into their titles.
        shared: topics that share a value which no source has twice (columns as of `shared_values`).
        merged: fields of pairs that earlier runs merged (columns MERGED_FIELDS).
    """

    corpus: Corpus
    origins: Origins
    formats: TitleFormats
    shared: pl.DataFrame
    merged: pl.DataFrame

    def extended(self, known: ComparedPairs, more: Candidates) -> ComparedPairs:
        """Compares more pairs, and puts them after those that are known."""
        plain = _by_titles(_compared(self.corpus, more)[0])
        found = signs(self.corpus, more, plain.shared, self.formats, self.origins.relations(more))
        pairs = joined(known.pairs, more)
        return self.of(
            pairs,
            together([unranked(known.levels), plain]),
            joined_signs(known.signs, found),
            self.origins.relations(pairs),
        )

    def of(self, pairs: Candidates, plain: Compared, found: Signs, relations: SourceRelations) -> ComparedPairs:
        """What follows from agreement and signs of all pairs together.

        Args:
            pairs: the pairs.
            plain: their agreement, each pair by itself.
            found: signs that they are siblings.
            relations: how their sources relate.
        """
        levels = ranked(plain, pairs, ~relations.same, len(self.corpus))
        namesakes = namesakes_across(found, relations, self.merged)
        common = in_common(self.shared, pairs, found, relations, self.merged)
        contradicts = contradiction(found, pairs, relations, self.merged, namesakes=namesakes, common=common)
        return ComparedPairs(pairs, levels, found, relations, namesakes, contradicts)


def compared_candidates(corpus: Corpus, pairs: Candidates, earlier: EarlierMerges) -> tuple[Comparer, ComparedPairs]:
    """Compares the candidates of a corpus, and learns from them about its sources.

    Args:
        corpus: the topics.
        pairs: the candidates.
        earlier: the merges in force.
    """
    plain, clash = _compared(corpus, pairs)
    repeated = plain.same_title & (clash == 0)
    origins = learn_origins(corpus, pairs, rankings(corpus, pairs, plain, clash), repeated, earlier.by_runs)
    plain = _by_titles(plain)
    relations = origins.relations(pairs)
    formats = learn_formats(corpus, pairs, plain.rankings[0], origins, relations)
    comparer = Comparer(corpus, origins, formats, shared_values(corpus, origins), earlier.fields)
    compared = comparer.of(pairs, plain, signs(corpus, pairs, plain.shared, formats, relations), relations)
    if len(pairs) > PAIRS_AT_ONCE:
        return_freed()  # the texts of so many topics are cut into many small pieces
    return comparer, compared


def _by_titles(plain: Compared) -> Compared:
    """Agreement with the ranking by titles alone; nothing needs the others once the sources are known."""
    return replace(plain, rankings=plain.rankings[:1].copy())


def _compared(corpus: Corpus, pairs: Candidates) -> tuple[Compared, Floats]:
    """How pairs agree, and the share of fields that contradict each other in those with contained titles (pairs,)."""
    shares: list[Floats] = []

    def parts() -> Iterator[Compared]:
        for some in pairs.in_blocks(PAIRS_AT_ONCE):
            values = corpus.value_pairs(some.a, some.b)
            part = compare(corpus, some, values)
            shares.append(contradicted(corpus, values, part.contained))
            yield part

    return together(parts()), np.concatenate(shares)
