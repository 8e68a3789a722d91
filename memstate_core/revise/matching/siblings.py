"""Signs that two topics are siblings rather than duplicates, however much of them agrees.

Families share a template: `Review of sprint 3` and `Review of sprint 18`, a deal a year with one customer, two
children of one owner. Within a family most comparisons agree, so a fitted model takes siblings for duplicates.
What separates them is what one states in place of the other. A pair with such a sign is never merged by the model
alone. Two records of one thing from two duplicate-free sources may differ more, if they share a code that no
other topic has, or one adds letters to the code of the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl

from memstate_core.revise.matching.blocking import Candidates
from memstate_core.revise.matching.corpus import Corpus
from memstate_core.revise.matching.differing_values import Flags, both, compared_summaries, differing_fields
from memstate_core.revise.matching.nearest import Floats, Ints
from memstate_core.revise.matching.sources import SourceRelations
from memstate_core.revise.matching.title_formats import TitleFormats
from memstate_core.revise.matching.unit_overlap import UnitIndex

FAMILY = 3
"""Other titles that share as much with one of a pair, from which on spelling variants count as different; between
duplicate-free sources beside the copy that each further one of them may hold. Duplicates with one title count once,
so that a group of them is no family."""
SAME_SHARE = 0.5
"""Nats within which another topic shares as much."""
MIN_ANCHORS, VARYING, MOSTLY = 30, 0.1, 0.6
"""Pairs that show whether a field varies among duplicates, and the shares of contradictions between which it does."""
REASONS = ("", "title", "number", "field", "summary")
"""What contradicts, by code: nothing, units of the titles, a number of one title alone, a field, the summaries."""
BY_TITLE = 1


@dataclass(frozen=True)
class Signs:
    """What contradicts in pairs, before sources and families are considered.

    Attributes:
        shared: nats of rarity that the titles share (pairs,).
        titles: equal for titles of the same words in the same order (topics,).
        title: both titles have units that the other lacks, variants of spelling aside, and words that differ by one
            edit where a source is duplicate-free (pairs,).
        strict: the same with variants counted as different (pairs,).
        equal: neither title has units that the other lacks (pairs,).
        identical: titles have the same words in the same order, summaries the same units, and at most one field
            contradicts; none where the summaries say nothing besides the titles (pairs,).
        number: one title has numbers where the other has none of its own, other than values of the other topic's
            fields (`Trip 2024` and `Trip` of the year 2024) (pairs,).
        fields: fields of which both topics have a value: columns pair, name, contradicts (the two name different
            things); sorted.
        summary: both summaries follow one template with different numbers or rare words (pairs,).
        code: both titles share a code that no third topic has (pairs,).
        stem: the same, but one title adds letters to the code (pairs,).
        formatted: one title has units that the other topic has in a field (`TitleFormats.stated`) (pairs,).
    """

    shared: Floats
    titles: Ints
    title: Flags
    strict: Flags
    equal: Flags
    identical: Flags
    number: Flags
    fields: pl.DataFrame
    summary: Flags
    code: Flags
    stem: Flags
    formatted: Flags


def signs(
    corpus: Corpus,
    pairs: Candidates,
    formats: TitleFormats,
    relations: SourceRelations,
    values: pl.DataFrame | None = None,
) -> Signs:
    """What contradicts in pairs.

    Args:
        corpus: the topics.
        pairs: the pairs.
        formats: which fields sources write into their titles.
        relations: how the sources of the pairs relate.
        values: the values of the pairs' fields (`Corpus.value_pairs`), where they are known already.
    """
    index, a, b, stated = corpus.title_units, pairs.a, pairs.b, formats.stated(corpus, pairs, relations)
    strict, single = index.differences(a, b, stated), corpus.single_values
    numbers = index.differences(a, b, (single[b], single[a]), numeric=True)
    same, equal = ~both(strict), (strict[0] <= 0) & (strict[1] <= 0)
    summary, template = compared_summaries(corpus, pairs)
    fields = differing_fields(corpus.value_pairs(a, b) if values is None else values)
    differing = np.bincount(fields.filter("contradicts")["pair"].to_numpy(), minlength=len(pairs))
    return Signs(
        shared=index.overlap(a, b).shared,
        titles=corpus.title_code,
        title=_differing_titles(index, pairs, stated, relations.competing),
        strict=~same,
        equal=equal,
        identical=(corpus.title_code[a] == corpus.title_code[b]) & summary & (differing <= corpus.summarised[a]),
        number=(numbers[0] > 0) ^ (numbers[1] > 0),
        fields=fields,
        summary=same & template,
        code=index.share_code(a, b),
        stem=index.share_stem(a, b),
        formatted=(np.diff(stated[0].indptr) > 0) | (np.diff(stated[1].indptr) > 0),
    )


def repeats(corpus: Corpus, pairs: Candidates, values: pl.DataFrame) -> Flags:
    """Pairs with the same title in which no field contradicts (pairs,).

    Args:
        corpus: the topics.
        pairs: the pairs.
        values: the values of the pairs' fields (`Corpus.value_pairs`).
    """
    found = np.asarray(corpus.title_code[pairs.a] == corpus.title_code[pairs.b])
    shown = differing_fields(values.filter(pl.col("pair").is_in(np.flatnonzero(found))))
    found[shown.filter("contradicts")["pair"].to_numpy()] = False
    return found


def joined(one: Signs, other: Signs) -> Signs:
    """The signs of both sets of pairs, the second after the first."""
    flat = ("shared", "title", "strict", "equal", "identical", "number", "summary", "code", "stem", "formatted")
    fields = pl.concat([one.fields, other.fields.with_columns(pl.col("pair") + len(one.shared))])
    both = {name: np.concatenate([getattr(one, name), getattr(other, name)]) for name in flat}
    return Signs(fields=fields, titles=one.titles, **both)


def contradiction(found: Signs, pairs: Candidates, relations: SourceRelations, merged: pl.DataFrame) -> Ints:
    """Which sign keeps each pair from a merge: its position in REASONS, 0 for none (pairs,).

    Args:
        found: signs of the pairs.
        pairs: the pairs.
        relations: how their sources relate.
        merged: fields of pairs that earlier runs merged (columns MERGED_FIELDS).
    """
    copies = np.where(relations.competing, max(0, relations.distinct - 2), 0)
    family = _family(found.shared, found.titles, pairs) >= FAMILY + copies
    excused = relations.competing & (found.code | found.stem)
    alone = ~relations.competing
    title = (found.title | (found.strict & family)) & ~excused
    field = _contradicting_fields(found, relations, merged) & ~excused
    by_reason = (title, found.number & alone, field, found.summary & alone)
    return np.select(by_reason, range(1, len(REASONS)), 0).astype(np.int64)


def _contradicting_fields(found: Signs, relations: SourceRelations, merged: pl.DataFrame) -> Flags:
    """Pairs with a field that contradicts, other than fields that are seen to vary among duplicates (pairs,).

    Pairs that are duplicates for other reasons show what varies, and pairs that earlier runs merged. Between
    duplicate-free sources, which have their own vocabularies and prices, the former are pairs with the same title or
    a code of their own; elsewhere, pairs with the same title and summary. Where siblings have the same title and
    summary, nearly all of these pairs contradict each other in the field that distinguishes the siblings, so a field
    varies there only if most of them agree.
    """
    contradicts = np.zeros(len(found.shared), bool)
    sets = (
        (relations.competing, found.equal | found.code, pl.col("across"), (VARYING, 1.0)),
        (~relations.competing, found.identical, ~pl.col("across") & pl.col("identical"), (VARYING, MOSTLY)),
    )
    for among, anchors, earlier, bounds in sets:
        shown = found.fields.filter(pl.col("pair").is_in(np.flatnonzero(among & anchors)))
        seen = [shown.select("name", "contradicts"), merged.filter(earlier).select("name", contradicts="differs")]
        counts = pl.concat(seen).group_by("name").agg(pl.len(), share=pl.col("contradicts").mean())
        varies = (pl.col("len") >= MIN_ANCHORS) & pl.col("share").is_between(*bounds)
        wrong = found.fields.filter(
            pl.col("contradicts") & ~pl.col("name").is_in(counts.filter(varies)["name"].implode())
        )
        flagged = np.zeros(len(contradicts), bool)
        flagged[wrong["pair"].to_numpy()] = True
        contradicts |= flagged & among
    return contradicts


def _differing_titles(index: UnitIndex, pairs: Candidates, stated: tuple[Any, Any], competing: Flags) -> Flags:
    """Pairs of which each title has units that the other lacks, other than variants (`Signs.title`) (pairs,).

    Args:
        index: the titles.
        pairs: the pairs.
        stated: units of a's and of b's title that the other topic states elsewhere, CSR of ones (pairs, units).
        competing: pairs with a duplicate-free source, whose titles may also differ by one edit of a word (pairs,).
    """
    differing = np.zeros(len(pairs), bool)
    variants: tuple[tuple[Flags, Literal["variants", "misspelt"]], ...]
    variants = ((~competing, "variants"), (competing, "misspelt"))
    for among, same in variants:
        rows = np.flatnonzero(among)
        if len(rows):
            some = stated[0][rows], stated[1][rows]
            differing[rows] = both(index.differences(pairs.a[rows], pairs.b[rows], some, same=same))
    return differing


def _family(shared: Floats, titles: Ints, pairs: Candidates) -> Ints:
    """How many other titles share as much with a topic of the pair; the fewer of both topics (pairs,)."""
    ends, others = np.concatenate([pairs.a, pairs.b]).astype(np.float64), titles[np.concatenate([pairs.b, pairs.a])]
    weight = np.minimum(np.tile(shared, 2).astype(np.float64), 900.0)
    order = np.lexsort((-weight, others, ends))
    first = np.diff(ends[order], prepend=-1.0).astype(bool) | np.diff(others[order], prepend=-1).astype(bool)
    key = np.sort((ends * 1000 + weight)[order[first]])
    counts = [
        np.searchsorted(key, end * 1000.0 + 999) - np.searchsorted(key, end * 1000.0 + weight[: len(end)] - SAME_SHARE)
        for end in (pairs.a, pairs.b)
    ]
    return np.asarray(np.minimum(*counts) - 1, np.int64)
