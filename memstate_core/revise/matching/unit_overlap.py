"""Units that two titles share and units that only one has, weighted by rarity.

Spelling variants match in part; numbers never do, and codes only when one extends the other. So "Alpha 1.2"
and "Alpha 1.3" differ, while "WFW8300SW" matches "WFW8300SWH".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, vstack

from memstate_core.revise.matching.nearest import Floats, Ints, pair_products
from memstate_core.revise.matching.tokens import is_number, unit_groups, units

ALIKE = 0.7
"""Cosine of letter groups from which two units count as variants of each other."""
BACKGROUND = 200
"""Assumed topics outside the store, one of which has a given unit, so that a small store can have rare units."""
_MIN_LENGTH = 4
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
    """The units of a set of titles, ready to compare pairs of them."""

    def __init__(self, titles: Sequence[str]) -> None:
        cut = [units(title) for title in titles]
        vocabulary = sorted({unit for row in cut for unit in row}) or [""]
        self._own = _incidence(cut, {unit: i for i, unit in enumerate(vocabulary)})
        frequency = np.asarray(self._own.sum(axis=0)).ravel()
        self._rarity = np.log((len(cut) + BACKGROUND + 1) / (frequency + 1.5)).astype(np.float32)
        self._numeric = np.array([is_number(unit) for unit in vocabulary], dtype=bool)
        self._explained = _row_maximum(self._own, _variants(vocabulary, self._numeric))

    def overlap(self, a: Ints, b: Ints, *, numeric: bool | None = None) -> Overlap:
        """Compares pairs of titles.

        Args:
            a: positions of titles.
            b: positions of the others.
            numeric: only units with digits (True), only those without (False), or all.
        """
        counted = np.ones_like(self._numeric) if numeric is None else self._numeric == numeric
        weighted = self._own.multiply((self._rarity * counted)[None, :]).tocsr()
        total = np.asarray(weighted.sum(axis=1)).ravel()
        in_b, in_a = (pair_products(weighted, self._explained, *pair) for pair in ((a, b), (b, a)))
        only = [np.maximum(total[own] - known, 0).astype(np.float32) for own, known in ((a, in_b), (b, in_a))]
        return Overlap(((in_a + in_b) / 2).astype(np.float32), *only)


def _incidence(cut: list[list[str]], column: dict[str, int]) -> Any:
    lengths = [len(row) for row in cut]
    columns = np.fromiter((column[unit] for row in cut for unit in row), dtype=np.int64, count=sum(lengths))
    starts = np.concatenate([[0], np.cumsum(lengths)])
    return csr_matrix((np.ones(len(columns), np.float32), columns, starts), shape=(len(cut), len(column)))


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
        longest = np.minimum(lengths[row], lengths[column]) >= _MIN_LENGTH
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


def _row_maximum(own: Any, variants: Any) -> Any:
    """For each title and unit, how well the title's best unit explains it."""
    holder = np.repeat(np.arange(own.shape[0]), np.diff(own.indptr))
    expanded = variants[own.indices].tocoo()
    key = holder[expanded.row].astype(np.int64) * own.shape[1] + expanded.col
    order = np.lexsort((-expanded.data, key))
    key, data = key[order], expanded.data[order]
    first = np.concatenate([[True], key[1:] != key[:-1]]) if len(key) else np.empty(0, bool)
    key = key[first]
    return csr_matrix((data[first], (key // own.shape[1], key % own.shape[1])), shape=own.shape)
