"""Values of fields, and summaries, that name different things.

Dates differ by a day, whole numbers by anything, other numbers by more than rounding, short texts by a number or
word in place of another. Longer texts describe, so they never contradict. Summaries do where both follow one template
and differ in what is rare.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from memstate_core.revise.matching.blocking import Candidates
from memstate_core.revise.matching.corpus import Corpus
from memstate_core.revise.matching.nearest import Floats, Ints, pair_products
from memstate_core.revise.matching.tokens import is_number, units

Flags = NDArray[np.bool_]

SHORT_VALUE = 4
"""Units of a field value up to which it names one thing, so that another value contradicts it."""
ALIKE_VALUE = 0.7
"""Similarity of letters from which two short values without different numbers are variants of each other."""
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
    text = _contradicting_texts(values["text"], values["text_b"], values["letters"])
    differs = pl.DataFrame({"days": days, "numbers": numbers, "text": text})
    contradicts = differs.select(contradicts=pl.coalesce("days", "numbers", "text"))
    return values.select("pair", "name").hstack(contradicts).sort("pair", "name")


def _contradicting_texts(one: pl.Series, other: pl.Series, letters: pl.Series) -> NDArray[np.bool_]:
    """Short values with other numbers, or of which each has a word that the other neither has nor abbreviates."""
    texts = pl.concat([one, other]).unique().sort()
    cut = [units(text) for text in texts.str.replace_all(_RANGE, "$1 $2")]
    a, b = (texts.search_sorted(side).to_numpy().astype(np.int64) for side in (one, other))
    every, numeric = _incidence(cut)
    size = np.asarray(every.sum(axis=1)).ravel()
    short = (np.minimum(size[a], size[b]) > 0) & (np.maximum(size[a], size[b]) <= SHORT_VALUE)
    numbers, words = (every.multiply(chosen[None, :]).tocsr() for chosen in (numeric, ~numeric))
    has, known = np.asarray(numbers.sum(axis=1)).ravel() > 0, (words @ _abbreviations(cut)).sign().tocsr()
    count = np.asarray(words.sum(axis=1)).ravel()
    lacks = [count[x] - pair_products(words, known, x, y) for x, y in ((a, b), (b, a))]
    other_numbers = has[a] & has[b] & (pair_products(numbers, numbers, a, b) <= 0)
    other_words = (lacks[0] > 0) & (lacks[1] > 0) & (letters.to_numpy() < ALIKE_VALUE)
    return np.asarray(short & (other_numbers | other_words))


def _abbreviations(cut: list[list[str]]) -> csr_matrix:
    """Which units are themselves, or begin with or are the beginning of each other (units, units)."""
    vocabulary = sorted({unit for row in cut for unit in row}) or [""]
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


def compared_summaries(corpus: Corpus, pairs: Candidates) -> tuple[Flags, Flags]:
    """Pairs of summaries with the same units, and pairs of one template with words or numbers that differ."""
    every, numeric = _incidence(corpus.summary_units)
    size = np.asarray(every.sum(axis=1)).ravel()
    frequency = np.asarray(every.sum(axis=0)).ravel()
    distinctive = every.multiply((numeric | (frequency <= RARE))[None, :]).tocsr()
    shared = pair_products(every, every, pairs.a, pairs.b)
    template = shared >= TEMPLATE * np.maximum(np.minimum(size[pairs.a], size[pairs.b]), 1)
    identical = (shared >= size[pairs.a]) & (shared >= size[pairs.b])
    short = np.minimum(size[pairs.a], size[pairs.b]) <= SHORT_SUMMARY
    only = size[pairs.a] - shared, size[pairs.b] - shared
    replaced = short & both(only) & (np.maximum(*only) <= REPLACED)
    differs = both(_only(distinctive, pairs.a, pairs.b)) | replaced
    return np.asarray(identical), np.asarray(template & differs)


def _only(matrix: csr_matrix, a: Ints, b: Ints) -> tuple[Floats, Floats]:
    """Units of one row that the other lacks, both ways."""
    size, shared = np.asarray(matrix.sum(axis=1)).ravel(), pair_products(matrix, matrix, a, b)
    return size[a] - shared, size[b] - shared


def _incidence(cut: list[list[str]]) -> tuple[csr_matrix, NDArray[np.bool_]]:
    """Rows of units as a matrix of ones, and which columns are numbers."""
    vocabulary = sorted({unit for row in cut for unit in row}) or [""]
    column = {unit: place for place, unit in enumerate(vocabulary)}
    starts = np.concatenate([[0], np.cumsum([len(row) for row in cut])]).astype(np.int64)
    places = np.fromiter((column[unit] for row in cut for unit in row), dtype=np.int64, count=int(starts[-1]))
    matrix = csr_matrix((np.ones(len(places), np.float32), places, starts), shape=(len(cut), len(vocabulary)))
    return matrix, np.array([is_number(unit) for unit in vocabulary], dtype=bool)


def both(only: tuple[Floats, Floats]) -> Flags:
    """Where each side has something that the other lacks (pairs,)."""
    return np.asarray((only[0] > 0) & (only[1] > 0))
