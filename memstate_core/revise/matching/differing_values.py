"""Values of fields, and summaries, that name different things.

Dates differ by a day, or as moments where both state a time with its zone (`typed_dates`), whole numbers by anything,
other numbers by more than rounding, numbers with a unit by another unit, short texts by a number or word in place of
another, by their order or by a denial, and all texts by signs (`marks`). Longer texts describe, so other words do not
contradict, but for a word in place of another in a statement; numbers do among the same words, where both are mostly
numbers, and beside a date. Summaries do where both follow one template and differ in what is rare, or in order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from memstate_core.revise.matching.abbreviations import known_units
from memstate_core.revise.matching.arrays import Floats, Ints, incidence, pair_products
from memstate_core.revise.matching.blocking import Candidates
from memstate_core.revise.matching.corpus import Corpus
from memstate_core.revise.matching.marks import differently_marked
from memstate_core.revise.matching.tokens import is_number, units
from memstate_core.revise.matching.typed_dates import other_clock, other_time, times
from memstate_core.revise.matching.typed_values import amounts, other_duration, other_number, other_year
from memstate_core.revise.matching.wording import differently_accented, in_place, negated, rearranged

Flags = NDArray[np.bool_]
Text = TypeVar("Text", pl.Expr, pl.Series)

SHORT_VALUE = 4
"""Units of a field value up to which it names one thing, so that another value contradicts it."""
ALIKE_VALUE = 0.7
"""Similarity of letters from which two short values without different numbers are variants of each other."""
FIGURES = 0.5
"""Share of numbers among the units of a value from which it is a date, a time or a measure, not a description."""
_VARIANT = 2
"""Letters of a word from which another spelling of it may be a variant; `b` is none of `a`."""
LONG_NUMBER, LONG_CODE = 7, 6
"""Digits of a number, and letters and digits of a code without spaces, from which on they are written in groups."""
_DOTTED = r"(?:^|\D)\d\.\d|\d\.\d(?:\D|$)"
"""Versions and addresses, whose points separate numbers."""
_THOUSANDS = r"(\d),(\d{3}(?:\D|$))"
_RANGE = r"(\d)\s*[-\u2013]+\s*(\d)"
TEMPLATE = 0.6
"""Share of the shorter summary's units in the other from which both follow one template."""
RARE = 2
"""Summaries that have a word, up to which it is rare."""
SHORT_SUMMARY, REPLACED = 12, 2
"""Units of a summary, and of it in place of others, up to which common words too make another statement."""


def differing_fields(values: pl.DataFrame) -> pl.DataFrame:
    """Fields of which both topics have a value (columns pair, name, contradicts, worded, accents, same).

    `worded` says that texts contradict each other by more than numbers, `accents` that a text has the same words with
    other accents, `same` that nothing but spelling differs.
    """
    distinct = pl.concat([values["text"], values["text_b"]]).unique().sort()
    written = distinct.to_list()
    a, b = (distinct.search_sorted(values[side]).to_numpy().astype(np.int64) for side in ("text", "text_b"))
    one_dated = (values["day"].is_null() != values["day_b"].is_null()).to_numpy()
    differ, numbered = _contradicting_texts(distinct, a, b, values["letters"].to_numpy(), one_dated)
    read = pl.DataFrame({"text": distinct}).select(*times(pl.col("text")), *amounts(pl.col("text")))
    seen = (
        values.hstack(read[a])
        .hstack(read[b].rename(lambda name: f"{name}_b"))
        .with_columns(
            dated=other_time(),
            words=pl.Series(differ, dtype=pl.Boolean),
            numbered=pl.Series(numbered, dtype=pl.Boolean),
            marked=pl.Series(differently_marked(written, a, b), dtype=pl.Boolean),
            accents=pl.Series(differently_accented(written, a, b), dtype=pl.Boolean),
            units=(pl.col("unit") != pl.col("unit_b")).fill_null(False),
            timed=pl.coalesce(other_clock(), other_duration()),
        )
    )
    typed = pl.coalesce("dated", "timed", other_year(), other_number())
    otherwise = (pl.col("units") & pl.col("timed").is_null()) | pl.col("marked")
    contradicts = pl.coalesce(typed, "words") | otherwise
    letters = [squeezed(pl.col(text)) for text in ("text", "text_b")]
    same = pl.coalesce(~pl.col("dated"), pl.col("number") == pl.col("number_b"), letters[0] == letters[1])
    worded = typed.is_null() & pl.col("words") & ~pl.col("numbered") & ~otherwise
    found = seen.select("pair", "name", "accents", contradicts=contradicts, worded=worded, same=same)
    return found.sort("pair", "name")


def squeezed(text: Text) -> Text:
    """A text's letters and digits, in lower case."""
    return text.str.to_lowercase().str.replace_all(r"[^\p{L}\p{N}]", "")


def _contradicting_texts(
    texts: pl.Series, a: Ints, b: Ints, letters: NDArray[np.float64], one_dated: Flags
) -> tuple[Flags, Flags]:
    """Which values name different things, and which of them by their numbers (two arrays, (pairs,)).

    Short ones of which each has a number that the other lacks, or a word that the other neither has nor abbreviates;
    longer ones of the same words, of mostly numbers, or of which one alone is a date, of which each has a number that
    the other lacks, and statements of one template with other words; those of the same words in another order; and
    those of which one denies. Long numbers, and codes, are the same in other groups.

    Args:
        texts: distinct values.
        a: positions of values (pairs,).
        b: positions of the others (pairs,).
        letters: the cosine of their letter groups (pairs,).
        one_dated: whether one of both is a date, and the other is not known to be one (pairs,).
    """
    cut = [units(text) for text in texts.str.replace_all(_THOUSANDS, "$1$2").str.replace_all(_RANGE, "$1 $2")]
    every, numeric = _incidence(cut)
    numbers, words = (every.multiply(chosen[None, :]).tocsr() for chosen in (numeric, ~numeric))
    size, figures = (np.asarray(matrix.sum(axis=1)).ravel() for matrix in (every, numbers))
    longest, shortest = np.maximum(size[a], size[b]), np.minimum(size[a], size[b])
    short, brief = ((shortest > 0) & (longest <= most) for most in (SHORT_VALUE, SHORT_SUMMARY))
    share = figures / np.maximum(size, 1)
    mostly_numbers = np.minimum(share[a], share[b]) >= FIGURES
    only = _only(every, a, b)
    other_numbers = both(_only(numbers, a, b)) & ~_regrouped(texts, a, b)
    vocabulary = _vocabulary(cut)
    single = np.array([0 < len(unit) < _VARIANT for unit in vocabulary])
    written = texts.to_list()
    known = known_units(written, words, vocabulary)
    lacks, lacks_single = (_lacking(kept, known, a, b) for kept in (words, words.multiply(single[None, :]).tocsr()))
    replaced = both(lacks) & ((letters < ALIKE_VALUE) | (both(lacks_single) & (lacks[0] <= lacks_single[0])))
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


def _regrouped(texts: pl.Series, a: Ints, b: Ints) -> Flags:
    """Pairs of texts with the same digits of a long number, or letters and digits of a code, in other groups (pairs,).

    Those of a telephone are written in many ways, as are codes of models: `M8162/59` and `M816259`.
    """
    letters = squeezed(texts)
    digits = texts.str.replace_all(r"[^0-9]", "")
    code = letters.str.contains(r"\d") & letters.str.contains(r"\p{L}") & (letters.str.len_chars() >= LONG_CODE)
    groups = [(digits, digits.str.len_chars() >= LONG_NUMBER), (letters, code & ~texts.str.contains(r"\s"))]
    same = np.zeros(len(a), bool)
    for grouped, long in groups:
        number, enough = grouped.rank("dense").to_numpy(), (long & ~texts.str.contains(_DOTTED)).to_numpy()
        same |= (number[a] == number[b]) & enough[a] & enough[b]
    return same


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
        unlike: each says something of its own, and they share little (pairs,).
        added: short ones of which one adds few words to the other (pairs,).
        accents: one template with the same words under other accents (pairs,).
    """

    same: Flags
    replaced: Flags
    unlike: Flags
    added: Flags
    accents: Flags


def compared_summaries(corpus: Corpus, pairs: Candidates) -> Summaries:
    """Compares the summaries of pairs."""
    every, numeric = _incidence(corpus.summary_units)
    size = np.asarray(every.sum(axis=1)).ravel()
    frequency = np.asarray(every.sum(axis=0)).ravel()
    distinctive = every.multiply((numeric | (frequency <= RARE))[None, :]).tocsr()
    shared = pair_products(every, every, pairs.a, pairs.b)
    smaller = np.minimum(size[pairs.a], size[pairs.b])
    template = shared >= TEMPLATE * np.maximum(smaller, 1)
    only = size[pairs.a] - shared, size[pairs.b] - shared
    marked = differently_marked(corpus.summaries, pairs.a, pairs.b)
    brief, few = smaller <= SHORT_SUMMARY, np.maximum(*only) <= REPLACED
    order = ~either(only)
    order[order] = rearranged(corpus.summaries, pairs.a[order], pairs.b[order])
    accents = differently_accented(corpus.summaries, pairs.a, pairs.b)
    denied = brief & few
    denied[denied] = negated(corpus.summaries, pairs.a[denied], pairs.b[denied])
    differs = both(_only(distinctive, pairs.a, pairs.b)) | (brief & few & both(only)) | marked | order | denied
    added = template & few & (smaller > 0) & (smaller <= SHORT_VALUE) & either(only) & ~both(only)
    same = ~either(only) & ~marked & ~order & ~accents
    flags = same, template & differs, ~template & both(only), added, template & accents
    return Summaries(*(np.asarray(each) for each in flags))


def _only(matrix: csr_matrix, a: Ints, b: Ints) -> tuple[Floats, Floats]:
    """Units of one row that the other lacks, both ways."""
    size, shared = np.asarray(matrix.sum(axis=1)).ravel(), pair_products(matrix, matrix, a, b)
    return size[a] - shared, size[b] - shared


def _incidence(cut: list[list[str]]) -> tuple[csr_matrix, NDArray[np.bool_]]:
    """Rows of units as a matrix of ones, and which columns are numbers."""
    vocabulary = _vocabulary(cut)
    matrix = incidence(cut, {unit: place for place, unit in enumerate(vocabulary)})
    return matrix, np.array([is_number(unit) for unit in vocabulary], dtype=bool)


def _vocabulary(cut: list[list[str]]) -> list[str]:
    return sorted({unit for row in cut for unit in row}) or [""]


def either(only: tuple[Floats, Floats]) -> Flags:
    """Where one side has something that the other lacks (pairs,)."""
    return np.asarray((only[0] > 0) | (only[1] > 0))


def both(only: tuple[Floats, Floats]) -> Flags:
    """Where each side has something that the other lacks (pairs,)."""
    return np.asarray((only[0] > 0) & (only[1] > 0))
