"""Units that two titles share and units that only one has, weighted by rarity.

Spelling variants match in part; numbers never do, and codes only when one extends the other. So "Alpha 1.2"
and "Alpha 1.3" differ, while "WFW8300SW" matches "WFW8300SWH".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, vstack

from memstate_core.revise.matching.arrays import (
    Floats,
    Ints,
    codes_of,
    incidence,
    named_incidence,
    pair_products,
    weighted,
)
from memstate_core.revise.matching.texts.tokens import is_number, unit_groups, units

ALIKE = 0.7
"""Cosine of letter groups from which two units count as variants of each other."""
BACKGROUND = 200
"""Assumed topics outside the store, one of which has a given unit, so that a small store can have rare units."""
MIN_LENGTH = 4
"""Characters from which on units may be variants of each other, or codes."""
_BLOCK = 1024


@dataclass(frozen=True)
class Overlap:
    """For each pair, in nats of rarity (the sum of inverse document frequencies), shape (pairs,).

    Attributes:
        shared: units of both titles.
        only_a: units of a alone.
        only_b: units of b alone.
    """

    shared: Floats
    only_a: Floats
    only_b: Floats

    @property
    def conflict(self) -> Floats:
        """Units that replace each other: the smaller of the two differences."""
        return np.minimum(self.only_a, self.only_b)


class UnitIndex:
    """The units of a set of titles, ready to compare pairs of them.

    Args:
        titles: the titles.

    Attributes:
        cut: the units of each title.
        own: the same, CSR of ones (titles, units).
        column: the place of each unit among `own`'s columns, in order.
        codes: equal for titles with the same units (titles,).
        information: nats of rarity of each title's units together (titles,).
        numeric: which units are numbers or codes (units,).
        variants: how far each unit explains each other one: 1 itself, the cosine of their letter groups where they are
            variants of each other, else 0; CSR (units, units).
    """

    def __init__(self, titles: Sequence[str]) -> None:
        self.cut = cut = [units(title) for title in titles]
        self.own, vocabulary = named_incidence(cut)
        self.column = {unit: place for place, unit in enumerate(vocabulary)}
        self.codes = codes_of([" ".join(row) for row in cut])
        self._rarity = _rarity(sums(self.own), len(cut))
        self.information = np.asarray(self.own @ self._rarity, np.float64)
        self.numeric = np.array([is_number(unit) for unit in vocabulary], dtype=bool)
        self.variants = _variants(vocabulary, self.numeric)
        self._explained = row_maximum(self.own, self.variants)

    @cached_property
    def _weighted(self) -> tuple[tuple[Any, Floats], tuple[Any, Floats]]:
        """The units of titles by their rarity, CSR, and the sum of each: all, and numeric ones."""
        every, numeric = (weighted(self.own, rarity) for rarity in (self._rarity, self._rarity * self.numeric))
        return (every, np.asarray(every.sum(axis=1)).ravel()), (numeric, np.asarray(numeric.sum(axis=1)).ravel())

    def known(self, cut: Sequence[Sequence[str]]) -> tuple[Any, Floats]:
        """The units of texts as those of the titles (CSR of ones, (texts, units)), and how many each text has."""
        size = np.array([len(row) for row in cut], np.float32)
        return incidence([[unit for unit in row if unit in self.column] for row in cut], self.column), size

    def overlap(self, a: Ints, b: Ints, *, numeric: bool = False) -> Overlap:
        """Compares pairs of titles.

        Args:
            a: positions of titles.
            b: positions of the others.
            numeric: only numbers and codes.
        """
        own, total = self._weighted[int(numeric)]
        in_b, in_a = (pair_products(own, self._explained, *pair) for pair in ((a, b), (b, a)))
        only = [np.maximum(total[one] - known, 0).astype(np.float32) for one, known in ((a, in_b), (b, in_a))]
        return Overlap(((in_a + in_b) / 2).astype(np.float32), *only)


def unit_rarity(cut: Sequence[Sequence[str]]) -> tuple[Any, Floats]:
    """The units of texts (CSR of ones, (texts, units)), and the rarity of each unit in nats (units,)."""
    own, _ = named_incidence(cut)
    return own, _rarity(sums(own), len(cut))


def _rarity(frequency: Floats, texts: int) -> Floats:
    return np.log((texts + BACKGROUND + 1) / (frequency + 1.5)).astype(np.float32)


def sums(matrix: Any) -> Floats:
    """How many texts have each unit (units,)."""
    return np.asarray(matrix.sum(axis=0)).ravel()


def _variants(vocabulary: list[str], numeric: NDArray[np.bool_]) -> Any:
    """How far each unit explains each other one: 1 itself, their cosine where they are variants, else 0."""
    from sklearn.feature_extraction.text import TfidfVectorizer  # slow to load, and only nights need it

    groups = TfidfVectorizer(analyzer=unit_groups, use_idf=False, dtype=np.float32).fit_transform(vocabulary).tocsr()
    lengths, names = np.array([len(unit) for unit in vocabulary]), np.array(vocabulary)
    digits = np.array([unit.isdigit() for unit in vocabulary], dtype=bool)
    transposed, blocks = groups.T.tocsr(), []
    for start in range(0, len(vocabulary), _BLOCK):
        block = groups[start : start + _BLOCK] @ transposed
        alike = np.flatnonzero(block.data >= ALIKE)
        row, column = np.searchsorted(block.indptr, alike, side="right") - 1 + start, block.indices[alike]
        longest = np.minimum(lengths[row], lengths[column]) >= MIN_LENGTH
        kept = longest & ~digits[row] & ~digits[column] & (row != column)
        row, column, data = row[kept], column[kept], block.data[alike][kept]
        plain = ~numeric[row] & ~numeric[column]
        kept = plain | _one_extends_other(names[row], names[column])
        own = np.arange(start, min(start + _BLOCK, len(vocabulary)))
        entries = np.concatenate([data[kept], np.ones(len(own), np.float32)])
        place = (np.concatenate([row[kept], own]) - start, np.concatenate([column[kept], own]))
        blocks.append(csr_matrix((entries, place), shape=(len(own), len(vocabulary))))
    return vstack(blocks).tocsr()


def _one_extends_other(one: NDArray[np.str_], other: NDArray[np.str_]) -> NDArray[np.bool_]:
    """Codes of which one is the other with letters appended; an appended digit makes another code."""
    longer = np.where(np.char.str_len(one) > np.char.str_len(other), one, other)
    shorter = np.where(longer == one, other, one)
    begins = np.char.startswith(longer, shorter)
    rest = [long[len(short) :].isalpha() for long, short in zip(longer, shorter, strict=True)]
    return np.asarray(begins & np.array(rest, dtype=bool))


def row_maximum(own: Any, variants: Any) -> Any:
    """For each title and unit, how well the title's best unit explains it."""
    holder = np.repeat(np.arange(own.shape[0]), np.diff(own.indptr))
    expanded = variants[own.indices].tocoo()
    key = holder[expanded.row].astype(np.int64) * own.shape[1] + expanded.col
    order = np.lexsort((-expanded.data, key))
    key, data = key[order], expanded.data[order]
    first = np.concatenate([[True], key[1:] != key[:-1]]) if len(key) else np.empty(0, bool)
    key = key[first]
    return csr_matrix((data[first], (key // own.shape[1], key % own.shape[1])), shape=own.shape)
