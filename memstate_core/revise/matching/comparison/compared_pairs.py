"""All that is known of pairs before a model weighs it: agreement, sources, signs, and what contradicts.

The values of all fields of all pairs would take more memory than all else, so pairs are compared in blocks. What is
derived from the texts of many topics for these comparisons goes with them.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
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
MANY_PAIRS = 5_000_000
"""Pairs beyond which what is derived from texts for comparisons is not kept: some 1.5 KiB for each topic. It is made
again where more pairs follow."""


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

    def unranked(self) -> ComparedPairs:
        """The same without rankings by agreement, which are needed only where more pairs follow."""
        return replace(self, levels=replace(self.levels, rankings=np.empty((0, len(self.pairs)))))


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
        corpus, pairs = _to_compare(self.corpus, known.pairs), joined(known.pairs, more)
        plain = _by_titles(_compared(corpus, more)[0])
        found = signs(corpus, more, plain.shared, self.formats, self.origins.relations(more))
        del corpus
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
    return_freed_of(pairs)
    texts = _to_compare(corpus, pairs)
    plain, clash = _compared(texts, pairs)
    repeated = plain.same_title & (clash == 0)
    origins = learn_origins(texts, pairs, rankings(texts, pairs, plain, clash), repeated, earlier.by_runs)
    plain = _by_titles(plain)
    relations = origins.relations(pairs)
    formats = learn_formats(texts, pairs, plain.rankings[0], origins, relations)
    found = signs(texts, pairs, plain.shared, formats, relations)
    del texts
    return_freed_of(pairs)
    comparer = Comparer(corpus, origins, formats, shared_values(corpus, origins), earlier.fields)
    compared = comparer.of(pairs, plain, found, relations)
    return_freed_of(pairs)
    return comparer, compared


def return_freed_of(pairs: Candidates) -> None:
    """Returns freed memory to the system where there are so many pairs that it matters.

    The texts of many topics are cut into many small pieces, and what is freed between them would stay with the process.
    """
    if len(pairs) > PAIRS_AT_ONCE:
        return_freed()


def _to_compare(corpus: Corpus, pairs: Candidates) -> Corpus:
    """The corpus; for many pairs a copy, with which all goes that is derived for comparisons alone."""
    if len(pairs) <= MANY_PAIRS:
        return corpus
    _ = corpus.title_units  # later steps need it, too
    return copy(corpus)


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

    levels = together(parts())
    return_freed_of(pairs)
    return levels, np.concatenate(shares)
