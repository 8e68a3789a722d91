"""Values of fields, and summaries, that name different things.

Dates differ by a day, whole numbers by anything, other numbers by more than rounding, numbers with a unit by another
unit, short texts by a number or word in place of another, and all texts by signs (`marks`). Longer texts describe, so
other words do not contradict; numbers do among the same words. Summaries do where both follow one template and differ
in what is rare.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from memstate_core.revise.matching.blocking import Candidates
from memstate_core.revise.matching.corpus import Corpus
from memstate_core.revise.matching.marks import differently_marked
from memstate_core.revise.matching.nearest import Floats, Ints, incidence, pair_products
from memstate_core.revise.matching.tokens import is_number, units
from memstate_core.revise.matching.typed_values import unit

Flags = NDArray[np.bool_]

SHORT_VALUE = 4
"""Units of a field value up to which it names one thing, so that another value contradicts it."""
ALIKE_VALUE = 0.7
"""Similarity of letters from which two short values without different numbers are variants of each other."""
_VARIANT = 2
"""Letters of a word from which another spelling of it may be a variant; `b` is none of `a`."""
NEAR_NUMBER = 0.005
"""Relative distance of numbers up to which they are the same but for rounding."""
_RANGE = r"(\d)\s*-\s*(\d)"
TEMPLATE = 0.6
"""Share of the shorter summary's units in the other from which both follow one template."""
RARE = 2
"""Summaries that have a word, up to which it is rare."""
SHORT_SUMMARY, REPLACED = 12, 2
"""Units of a summary, and of it in place of others, up to which common words too make another statement."""


def differing_fields(values: pl.DataFrame) -> pl.DataFrame:
    """Fields of which both topics have a value (columns pair, name, contradicts)."""
    one, other = values["number"], values["number_b"]
    whole = (one == one.round()) & (other == other.round())
    size = pl.select(pl.max_horizontal(one.abs(), other.abs(), 1e-12)).to_series()
    numbers = (one != other) & (whole | ((one - other).abs() / size > NEAR_NUMBER))
    days = (values["day"] - values["day_b"]).abs() >= 1
    texts = pl.concat([values["text"], values["text_b"]]).unique().sort()
    a, b = (texts.search_sorted(values[side]).to_numpy().astype(np.int64) for side in ("text", "text_b"))
    text = _contradicting_texts(texts, a, b, values["letters"].to_numpy())
    differs = pl.DataFrame({"days": days, "numbers": numbers, "text": text})
    contradicts = differs.select(contradicts=pl.coalesce("days", "numbers", "text")).to_series()
    units_differ = values.select((unit(pl.col("text")) != unit(pl.col("text_b"))).fill_null(False)).to_series()
    marked = pl.Series(differently_marked(texts.to_list(), a, b), dtype=pl.Boolean)
    found = (contradicts | units_differ | marked).alias("contradicts")
    return values.select("pair", "name").with_columns(found).sort("pair", "name")


def _contradicting_texts(texts: pl.Series, a: Ints, b: Ints, letters: NDArray[np.float64]) -> Flags:
    """Which values name different things (pairs,).

    Short ones of which each has a number that the other lacks, or a word that the other neither has nor abbreviates;
    longer ones of the same words of which each has a number that the other lacks. The same digits in other groups are
    one number.

    Args:
        texts: distinct values.
        a: positions of values (pairs,).
        b: positions of the others (pairs,).
        letters: the cosine of their letter groups (pairs,).
    """
    cut = [units(text) for text in texts.str.replace_all(_RANGE, "$1 $2")]
    digits = texts.str.replace_all(r"\D", "").rank("dense").to_numpy()
    every, numeric = _incidence(cut)
    size = np.asarray(every.sum(axis=1)).ravel()
    short = (np.minimum(size[a], size[b]) > 0) & (np.maximum(size[a], size[b]) <= SHORT_VALUE)
    numbers, words = (every.multiply(chosen[None, :]).tocsr() for chosen in (numeric, ~numeric))
    other_numbers = both(_only(numbers, a, b)) & (digits[a] != digits[b])
    brief = np.array([0 < len(unit) < _VARIANT for unit in _vocabulary(cut)])
    known = (words @ _abbreviations(cut)).sign().tocsr()
    lacks, lacks_brief = (_lacking(kept, known, a, b) for kept in (words, words.multiply(brief[None, :]).tocsr()))
    replaced = both(lacks) & ((letters < ALIKE_VALUE) | (both(lacks_brief) & (lacks[0] <= lacks_brief[0])))
    same_words = (lacks[0] <= 0) & (lacks[1] <= 0)
    return np.asarray((short & (other_numbers | replaced)) | (same_words & other_numbers))


def _lacking(some: csr_matrix, known: csr_matrix, a: Ints, b: Ints) -> tuple[Floats, Floats]:
    """How many of some units of each text the other does not know (two arrays, (pairs,))."""
    count = np.asarray(some.sum(axis=1)).ravel()
    return count[a] - pair_products(some, known, a, b), count[b] - pair_products(some, known, b, a)


def _abbreviations(cut: list[list[str]]) -> csr_matrix:
    """Which units are themselves, or begin with or are the beginning of each other (units, units)."""
    vocabulary = _vocabulary(cut)
    column = {unit: place for place, unit in enumerate(vocabulary)}
    found = [
        (place, column[unit[:end]])
        for place, unit in enumerate(vocabulary)
        for end in range(1, len(unit) + 1)
        if unit[:end] in column
    ]
    rows, columns = np.array(found, np.int64).reshape(-1, 2).T
    ones = csr_matrix((np.ones(len(rows), np.float32), (rows, columns)), shape=(len(vocabulary),) * 2)
    return ones.maximum(ones.T.tocsr())


@dataclass(frozen=True)
class Summaries:
    """How the summaries of pairs compare.

    Attributes:
        same: the same units under the same signs (pairs,).
        replaced: one template with words or numbers that differ (pairs,).
        unlike: each says something of its own, and they share little (pairs,).
    """

    same: Flags
    replaced: Flags
    unlike: Flags


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
    brief = (smaller <= SHORT_SUMMARY) & both(only) & (np.maximum(*only) <= REPLACED)
    differs = both(_only(distinctive, pairs.a, pairs.b)) | brief | marked
    same = (shared >= size[pairs.a]) & (shared >= size[pairs.b]) & ~marked
    return Summaries(np.asarray(same), np.asarray(template & differs), np.asarray(~template & both(only)))


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


def both(only: tuple[Floats, Floats]) -> Flags:
    """Where each side has something that the other lacks (pairs,)."""
    return np.asarray((only[0] > 0) & (only[1] > 0))
