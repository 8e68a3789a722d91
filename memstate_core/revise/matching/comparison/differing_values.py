"""Values of fields, and summaries, that name different things.

Dates differ by a day, or as moments where both state a time with its zone (`typed_dates`), whole numbers by anything,
other numbers by more than rounding, numbers with a unit by another unit, short texts by a number or word in place of
another, by their order or by a denial, and all texts by signs (`marks`). Longer texts describe, so other words do not
contradict, but for a word in place of another in a statement; numbers do among the same words, where both are mostly
numbers, and beside a date. Summaries do where both follow one template and differ in what is rare, or in order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from memstate_core.revise.matching.arrays import Floats, Ints, pair_products
from memstate_core.revise.matching.candidates.blocking import Candidates
from memstate_core.revise.matching.corpus import Corpus
from memstate_core.revise.matching.texts.field_texts import FieldTexts
from memstate_core.revise.matching.texts.marks import differently_marked
from memstate_core.revise.matching.texts.typed_dates import other_clock, other_time
from memstate_core.revise.matching.texts.typed_values import other_duration, other_number, other_year
from memstate_core.revise.matching.texts.wording import differently_accented, in_place, negated, rearranged

Flags = NDArray[np.bool_]

SHORT_VALUE = 4
"""Units of a field value up to which it names one thing, so that another value contradicts it."""
ALIKE_VALUE = 0.7
"""Similarity of letters from which two short values without different numbers are variants of each other."""
FIGURES = 0.5
"""Share of numbers among the units of a value from which it is a date, a time or a measure, not a description."""
TEMPLATE = 0.6
"""Share of the shorter summary's units in the other from which both follow one template."""
SHORT_SUMMARY, REPLACED = 12, 2
"""Units of a summary, and of it in place of others, up to which common words too make another statement."""


def differing_fields(corpus: Corpus, values: pl.DataFrame) -> pl.DataFrame:
    """Fields of which both topics have a value.

    Args:
        corpus: the topics.
        values: the values of pairs' fields (`Corpus.value_pairs`).

    Returns:
        Columns pair, name, contradicts, worded (texts contradict each other by more than numbers), accents (a text has
        the same words with other accents), same (nothing but spelling differs), own (one of the values is a word of its
        source alone), rarity (that of the first value, in nats; 0 where its topic's title states it), coded (the values
        contradict each other, and are two codes).
    """
    own = corpus.own_words
    texts, rows, rows_b = corpus.field_texts, values["value"].to_numpy(), values["value_b"].to_numpy()
    a, b = (texts.code[side] for side in (rows, rows_b))
    one_dated = (values["day"].is_null() != values["day_b"].is_null()).to_numpy()
    differ, numbered = _contradicting_texts(texts, a, b, values["letters"].to_numpy(), one_dated)
    seen = (
        values.hstack(texts.read[a])
        .hstack(texts.read[b].rename(lambda name: f"{name}_b"))
        .with_columns(
            dated=other_time(),
            words=pl.Series(differ, dtype=pl.Boolean),
            numbered=pl.Series(numbered, dtype=pl.Boolean),
            marked=pl.Series(differently_marked(texts.marks, a, b), dtype=pl.Boolean),
            accents=pl.Series(differently_accented(texts.written, a, b), dtype=pl.Boolean),
            own=pl.Series(own[rows] | own[rows_b], dtype=pl.Boolean),
            rarity=pl.Series(corpus.value_rarity[rows], dtype=pl.Float32),
            least_size=corpus.least_sizes[rows],
            squeezed=pl.Series(texts.squeezed[a] == texts.squeezed[b], dtype=pl.Boolean),
            units=(pl.col("unit") != pl.col("unit_b")).fill_null(False),
            timed=pl.coalesce(other_clock(), other_duration()),
        )
    )
    typed = pl.coalesce("dated", "timed", other_year(), other_number())
    otherwise = (pl.col("units") & pl.col("timed").is_null()) | pl.col("marked")
    contradicts = pl.coalesce(typed, "words") | otherwise
    same = pl.coalesce(~pl.col("dated"), pl.col("number") == pl.col("number_b"), "squeezed")
    worded = typed.is_null() & pl.col("words") & ~pl.col("numbered") & ~otherwise
    kept = "pair", "name", "accents", "own", "rarity"
    found = seen.select(*kept, contradicts=contradicts, worded=worded, same=same)
    coded = found["contradicts"].to_numpy().copy()
    coded[coded] = texts.other_code(a[coded], b[coded])
    return found.with_columns(coded=pl.Series(coded, dtype=pl.Boolean)).sort("pair", "name")


def _contradicting_texts(
    texts: FieldTexts, a: Ints, b: Ints, letters: NDArray[np.float64], one_dated: Flags
) -> tuple[Flags, Flags]:
    """Which values name different things, and which of them by their numbers (two arrays, (pairs,)).

    Short ones of which each has a number that the other lacks, or a word that the other neither has nor abbreviates;
    longer ones of the same words, of mostly numbers, or of which one alone is a date, of which each has a number that
    the other lacks, and statements of one template with other words; those of the same words in another order; and
    those of which one denies. Long numbers, and codes, are the same in other groups.

    Args:
        texts: the distinct values.
        a: positions of values (pairs,).
        b: positions of the others (pairs,).
        letters: the cosine of their letter groups (pairs,).
        one_dated: whether one of both is a date, and the other is not known to be one (pairs,).
    """
    longest, shortest = np.maximum(texts.size[a], texts.size[b]), np.minimum(texts.size[a], texts.size[b])
    short, brief = ((shortest > 0) & (longest <= most) for most in (SHORT_VALUE, SHORT_SUMMARY))
    mostly_numbers = np.minimum(texts.figures[a], texts.figures[b]) >= FIGURES
    only, written = _only(texts.every, a, b), texts.written
    other_numbers = both(_only(texts.numbers, a, b)) & ~texts.regrouped(a, b)
    lacks, lacks_letter = (_lacking(kept, texts.known, a, b) for kept in (texts.words, texts.letters))
    replaced = both(lacks) & ((letters < ALIKE_VALUE) | (both(lacks_letter) & (lacks[0] <= lacks_letter[0])))
    same_words = (lacks[0] <= 0) & (lacks[1] <= 0)
    order = brief & ~either(only)
    order[order] = rearranged(written, a[order], b[order], names=True)
    few = (np.maximum(*only) <= REPLACED) & (np.minimum(*only) <= (1 - TEMPLATE) * shortest)
    placed = brief & few & (both(lacks) | (mostly_numbers & either(only)))
    placed[placed] = in_place(written, a[placed], b[placed])
    denied = brief.copy()
    denied[denied] = negated(written, a[denied], b[denied])
    numbered = (same_words | mostly_numbers | one_dated) & other_numbers
    other = (short & (other_numbers | replaced)) | numbered | order | placed | denied
    return np.asarray(other), np.asarray(numbered)


def _lacking(some: csr_matrix, known: csr_matrix, a: Ints, b: Ints) -> tuple[Floats, Floats]:
    """How many of some units of each text the other does not know (two arrays, (pairs,))."""
    count = np.asarray(some.sum(axis=1)).ravel()
    return count[a] - pair_products(some, known, a, b), count[b] - pair_products(some, known, b, a)


@dataclass(frozen=True)
class Summaries:
    """How the summaries of pairs compare.

    Attributes:
        same: the same units in the same order under the same signs and accents (pairs,).
        replaced: one template with words or numbers that differ, or stand in another order (pairs,).
        own: `replaced`, or one template in which each has a number or an uncommon word of its own (pairs,).
        unlike: each says something of its own, and they share little (pairs,).
        added: short ones of which one adds few words to the other (pairs,).
        accents: one template with the same words under other accents (pairs,).
    """

    same: Flags
    replaced: Flags
    own: Flags
    unlike: Flags
    added: Flags
    accents: Flags


def compared_summaries(corpus: Corpus, pairs: Candidates) -> Summaries:
    """Compares the summaries of pairs."""
    texts = corpus.summary_texts
    written, size = texts.written, texts.size
    shared = pair_products(texts.every, texts.every, pairs.a, pairs.b)
    smaller = np.minimum(size[pairs.a], size[pairs.b])
    template = shared >= TEMPLATE * np.maximum(smaller, 1)
    only = size[pairs.a] - shared, size[pairs.b] - shared
    marked = differently_marked(texts.marks, pairs.a, pairs.b)
    brief, few = smaller <= SHORT_SUMMARY, np.maximum(*only) <= REPLACED
    order = ~either(only)
    order[order] = rearranged(written, pairs.a[order], pairs.b[order])
    accents = differently_accented(written, pairs.a, pairs.b)
    denied = brief & few
    denied[denied] = negated(written, pairs.a[denied], pairs.b[denied])
    differs = both(_only(texts.distinctive, pairs.a, pairs.b)) | (brief & few & both(only)) | marked | order | denied
    added = template & few & (smaller > 0) & (smaller <= SHORT_VALUE) & either(only) & ~both(only)
    same = ~either(only) & ~marked & ~order & ~accents
    own = differs | both(_only(texts.uncommon, pairs.a, pairs.b))
    flags = same, template & differs, template & own, ~template & both(only), added, template & accents
    return Summaries(*(np.asarray(each) for each in flags))


def _only(matrix: csr_matrix, a: Ints, b: Ints) -> tuple[Floats, Floats]:
    """Units of one row that the other lacks, both ways."""
    size, shared = np.asarray(matrix.sum(axis=1)).ravel(), pair_products(matrix, matrix, a, b)
    return size[a] - shared, size[b] - shared


def either(only: tuple[Floats, Floats]) -> Flags:
    """Where one side has something that the other lacks (pairs,)."""
    return np.asarray((only[0] > 0) | (only[1] > 0))


def both(only: tuple[Floats, Floats]) -> Flags:
    """Where each side has something that the other lacks (pairs,)."""
    return np.asarray((only[0] > 0) & (only[1] > 0))
