"""Signs that two topics are siblings rather than duplicates, however much of them agrees.

Families share a template: `Review of sprint 3` and `Review of sprint 18`, a deal a year with one customer, two
children of one owner. Within a family most comparisons agree, so a fitted model takes siblings for duplicates.
What separates them is what one states in place of the other. Which of these signs count, say `contradictions`.
"""

from __future__ import annotations

from dataclasses import dataclass
from dataclasses import fields as dataclass_fields
from typing import Any, Literal

import numpy as np
import polars as pl

from memstate_core.revise.matching.arrays import Floats, Ints
from memstate_core.revise.matching.candidates.blocking import Candidates
from memstate_core.revise.matching.comparison.differing_values import (
    Flags,
    both,
    compared_summaries,
    differing_fields,
    either,
)
from memstate_core.revise.matching.comparison.sources import SourceRelations
from memstate_core.revise.matching.comparison.stated_values import stated_otherwise
from memstate_core.revise.matching.comparison.title_formats import TitleFormats
from memstate_core.revise.matching.corpus import Corpus
from memstate_core.revise.matching.texts.marks import differently_marked
from memstate_core.revise.matching.texts.unit_differences import UnitDifferences
from memstate_core.revise.matching.texts.wording import differently_accented, negated, rearranged

FAMILY = 3
"""Other titles that share as much as those of a pair, from which on they are a family."""
RARITY = 3.0
"""Nats of rarity from which the values in which both topics agree are evidence of their own: about one topic in twenty
has such a value."""


@dataclass(frozen=True)
class Signs:
    """What contradicts in pairs, before sources and families are considered.

    Pairs whose titles differ in what nothing excuses (`_differ`) have the signs of their titles alone: no other sign
    would change what becomes of them.

    Attributes:
        shared: nats of rarity that the titles share (pairs,).
        titles: equal for titles of the same words in the same order (topics,).
        title: both titles have units that the other lacks, variants of spelling aside, and words that differ by one
            edit where a source is duplicate-free; or the same unit with another sign (`marks`) (pairs,).
        strict: the same with variants counted as different (pairs,).
        equal: neither title has units that the other lacks (pairs,).
        identical: titles have the same words in the same order, summaries the same units, and at most one field
            contradicts; none where the summaries say nothing besides the titles (pairs,).
        number: one title has numbers where the other has none of its own, other than values of the other topic's
            fields (`Trip 2024` and `Trip` of the year 2024) (pairs,).
        fields: fields of which both topics have a value, or one in its title another one than the other topic
            (`stated_values`): columns as of `differing_fields` but for rarity and coded; sorted.
        agreed: fields agree in values that few topics have and titles do not state (pairs,).
        summary: both summaries follow one template with different numbers or rare words (pairs,).
        own: both summaries follow one template, and each has a number or an uncommon word of its own (pairs,).
        unlike: the titles have the same words in the same order, and the summaries little in common (pairs,).
        code: both titles share a code that no third topic has (pairs,).
        stem: the same, but one title adds letters to the code (pairs,).
        coded: a field has two codes that contradict each other (pairs,).
        formatted: one title has units that the other topic has in a field (`TitleFormats.stated`) (pairs,).
        added: one title adds words to the other, and the summary says nothing of either thing, since topics of FAMILY
            titles and more beside theirs have it, too (pairs,).
        wording: the titles have the same words in another order, or one denies, or adds words that other titles add;
            or a text has the same words with other accents, a short summary adds words to the other, or what is said in
            fields is never the same, though all else is (pairs,).
        reworded: summaries that say something are the same, no field contradicts, and the titles differ by spelling,
            order, or words of one alone, but no number (pairs,).
    """

    shared: Floats
    titles: Ints
    title: Flags
    strict: Flags
    equal: Flags
    identical: Flags
    number: Flags
    fields: pl.DataFrame
    agreed: Flags
    summary: Flags
    own: Flags
    unlike: Flags
    code: Flags
    stem: Flags
    coded: Flags
    formatted: Flags
    added: Flags
    wording: Flags
    reworded: Flags


def signs(
    corpus: Corpus, pairs: Candidates, shared: Floats, formats: TitleFormats, relations: SourceRelations
) -> Signs:
    """What contradicts in pairs.

    Args:
        corpus: the topics.
        pairs: the pairs.
        shared: nats of rarity that the titles share (pairs,).
        formats: which fields sources write into their titles.
        relations: how the sources of the pairs relate.
    """
    stated, codes = formats.stated(corpus, pairs, relations), corpus.title_codes
    code, stem = codes.shared(pairs.a, pairs.b), codes.stems(pairs.a, pairs.b)
    settled = _differ(corpus, pairs, stated) & ~(relations.competing & (code | stem))
    rest = np.flatnonzero(~settled)
    some = stated[0][rest], stated[1][rest]
    flags, fields = _all_signs(corpus, pairs.where(~settled), some, relations.competing[rest])
    fields = _with_stated(fields, stated_otherwise(corpus, pairs.where(~settled), relations.competing[rest]))
    by_title = {name: settled if name in ("title", "strict") else np.zeros_like(settled) for name in flags}
    return Signs(
        shared=shared,
        titles=corpus.title_code,
        fields=fields.with_columns(pair=pl.Series(rest)[fields["pair"]]),
        code=code,
        stem=stem,
        formatted=(np.diff(stated[0].indptr) > 0) | (np.diff(stated[1].indptr) > 0),
        **{name: _placed(found, rest, by_title[name]) for name, found in flags.items()},
    )


def _with_stated(fields: pl.DataFrame, otherwise: pl.DataFrame) -> pl.DataFrame:
    """Fields of pairs, and those of which a title states another value (columns pair, name), which contradict."""
    flags = {name: pl.lit(name in ("contradicts", "worded")) for name in fields.columns if name not in ("pair", "name")}
    return pl.concat([fields, otherwise.with_columns(**flags).select(fields.columns)]).sort("pair", "name")


def _differ(corpus: Corpus, pairs: Candidates, stated: tuple[Any, Any]) -> Flags:
    """Pairs of which each title has units that the other lacks, other than words that differ by one edit (pairs,).

    Those of which one title alone adds units that the other topic states nowhere are left out: they show what titles
    add (`UnitDifferences.systematic`).
    """
    index, a, b = corpus.title_differences, pairs.a, pairs.b
    found = both(index.differences(a, b, stated, same="misspelt"))
    found[found] = ~index.adds(a[found], b[found], corpus.beside_in_titles)
    return found


def _placed(found: Flags, rest: Ints, others: Flags) -> Flags:
    """What was found of some pairs, beside what is known of the others (pairs,)."""
    every = others.copy()
    every[rest] = found
    return every


def _all_signs(
    corpus: Corpus, pairs: Candidates, stated: tuple[Any, Any], competing: Flags
) -> tuple[dict[str, Flags], pl.DataFrame]:
    """All flags of pairs by their names in `Signs`, and the fields (arguments as for `_differing_titles`)."""
    index, a, b = corpus.title_differences, pairs.a, pairs.b
    strict = index.differences(a, b, stated)
    numbers = index.differences(a, b, beside=corpus.single_values, numeric=True)
    same, equal = ~both(strict), (strict[0] <= 0) & (strict[1] <= 0)
    titled = corpus.title_code[a] == corpus.title_code[b]
    summaries = compared_summaries(corpus, pairs)
    fields = differing_fields(corpus, corpus.value_pairs(a, b))
    differing = np.bincount(fields.filter("contradicts")["pair"].to_numpy(), minlength=len(pairs))
    like = summaries.same & corpus.summarised[a] & (differing == 0) & (numbers[0] <= 0) & (numbers[1] <= 0)
    undisputed = (summaries.same | ~(corpus.summarised[a] | corpus.summarised[b])) & (differing == 0)
    added = either(strict) & negated(corpus.titles, a, b)
    added[undisputed] |= index.systematic(a[undisputed], b[undisputed], corpus.beside_in_titles)
    order = equal & ~titled
    order[order] = rearranged(corpus.titles, a[order], b[order])
    accents = differently_accented(corpus.titles, a, b) | summaries.accents
    accents[fields.filter("accents")["pair"].to_numpy()] = True
    disagreeing = titled & summaries.same & flagged(fields, len(pairs)) & ~flagged(fields.filter("same"), len(pairs))
    agree = fields.filter(~pl.col("contradicts"))
    rarity = np.bincount(agree["pair"].to_numpy(), agree["rarity"].to_numpy(), minlength=len(pairs))
    flags = {
        "agreed": rarity >= RARITY,
        "coded": flagged(fields.filter("coded"), len(pairs)),
        "title": _differing_titles(index, pairs, stated, competing) | differently_marked(corpus.title_marks, a, b),
        "strict": ~same,
        "equal": equal,
        "identical": titled & summaries.same & (differing <= corpus.summarised[a]),
        "number": (numbers[0] > 0) ^ (numbers[1] > 0),
        "summary": same & summaries.replaced,
        "own": same & summaries.own,
        "unlike": titled & summaries.unlike,
        "added": same & ~equal & summaries.same & corpus.summarised[a] & (corpus.titles_of_summary[a] >= FAMILY + 2),
        "wording": order | accents | added | summaries.added | disagreeing,
        "reworded": like & ~_differing_titles(index, pairs, stated, like),
    }
    return flags, fields.drop("rarity", "coded")


def flagged(rows: pl.DataFrame, pairs: int) -> Flags:
    """Which pairs are in a column `pair` (pairs,)."""
    return np.asarray(np.bincount(rows["pair"].to_numpy(), minlength=pairs) > 0)


def contradicted(corpus: Corpus, values: pl.DataFrame, among: Flags) -> Floats:
    """The share of the fields of both topics that contradict each other; 0 without any (pairs,).

    Args:
        corpus: the topics.
        values: the values of the pairs' fields (`Corpus.value_pairs`).
        among: the pairs that are looked at; 0 for others (pairs,).
    """
    shown = differing_fields(corpus, values.filter(pl.col("pair").is_in(np.flatnonzero(among))))
    counts = [
        np.bincount(rows["pair"].to_numpy(), minlength=len(among)) for rows in (shown.filter("contradicts"), shown)
    ]
    return (counts[0] / np.maximum(counts[1], 1)).astype(np.float32)


def joined(one: Signs, other: Signs) -> Signs:
    """The signs of both sets of pairs, the second after the first."""
    flat = [field.name for field in dataclass_fields(Signs) if field.name not in ("titles", "fields")]
    fields = pl.concat([one.fields, other.fields.with_columns(pl.col("pair") + len(one.shared))])
    both = {name: np.concatenate([getattr(one, name), getattr(other, name)]) for name in flat}
    return Signs(fields=fields, titles=one.titles, **both)


def _differing_titles(index: UnitDifferences, pairs: Candidates, stated: tuple[Any, Any], competing: Flags) -> Flags:
    """Pairs of which each title has units that the other lacks, other than variants (`Signs.title`) (pairs,).

    Args:
        index: the titles.
        pairs: the pairs.
        stated: units of a's and of b's title that the other topic states elsewhere, CSR of ones (pairs, units).
        competing: pairs whose titles may also differ by one edit of a word, as in duplicate-free sources (pairs,).
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
