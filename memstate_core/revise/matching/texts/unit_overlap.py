"""Units that two titles share and units that only one has, weighted by rarity.

Spelling variants match in part; numbers never do, and codes only when one extends the other. So "Alpha 1.2"
and "Alpha 1.3" differ, while "WFW8300SW" matches "WFW8300SWH".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal

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
from memstate_core.revise.matching.texts.edits import one_edit
from memstate_core.revise.matching.texts.tokens import is_number, unit_groups, units, words

ALIKE = 0.7
"""Cosine of letter groups from which two units count as variants of each other."""
BACKGROUND = 200
"""Assumed topics outside the store, one of which has a given unit, so that a small store can have rare units."""
SYSTEMATIC = 2
"""Titles to which a unit is added, from which on it distinguishes things."""
_MIN_LENGTH, _LONG = 4, 6
_TWICE, _LONGEST_CODE = 2, 32
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
        codes: equal for titles with the same units (titles,).
        information: nats of rarity of each title's units together (titles,).
    """

    def __init__(self, titles: Sequence[str]) -> None:
        self.cut = cut = [units(title) for title in titles]
        self.own, vocabulary = named_incidence(cut)
        self._column = column = {unit: place for place, unit in enumerate(vocabulary)}
        self.codes = codes_of([" ".join(row) for row in cut])
        self._rarity = _rarity(_sums(self.own), len(cut))
        self.information = np.asarray(self.own @ self._rarity, np.float64)
        self._numeric = np.array([is_number(unit) for unit in vocabulary], dtype=bool)
        variants = _variants(vocabulary, self._numeric)
        self._explained = _row_maximum(self.own, variants)
        written, parts = _compounds(titles, column)
        self._exact = self.own.maximum(written).maximum((self.own @ parts).sign())
        self._spellings = _of_long_units(variants, vocabulary)
        self._edits = _ones(*one_edit(vocabulary), (len(vocabulary), len(vocabulary)))
        self._loose = self._exact.maximum(_row_maximum(self.own, self._spellings).ceil())
        self._misspelt = self._exact.maximum(self.misspelt(self.own))
        self._written = self.own.maximum(written)
        codes = np.array([_is_code(unit) for unit in vocabulary], dtype=bool)
        self._codes = _of_two(self._written, codes)
        self._stems = _of_two((self._written @ _stems(vocabulary, codes)).sign(), codes)

    @cached_property
    def _weighted(self) -> dict[bool | None, tuple[Any, Floats]]:
        """The units of titles by their rarity, CSR, and the sum of each: numeric ones, others, and all."""
        counted = {None: np.ones_like(self._numeric), True: self._numeric, False: ~self._numeric}
        rows = {key: weighted(self.own, self._rarity * some) for key, some in counted.items()}
        return {key: (each, np.asarray(each.sum(axis=1)).ravel()) for key, each in rows.items()}

    def known(self, cut: Sequence[Sequence[str]]) -> tuple[Any, Floats]:
        """The units of texts as those of the titles (CSR of ones, (texts, units)), and how many each text has."""
        size = np.array([len(row) for row in cut], np.float32)
        return incidence([[unit for unit in row if unit in self._column] for row in cut], self._column), size

    def misspelt(self, texts: Any) -> Any:
        """Texts with the spelling variants of their units, and with words that differ by one edit.

        Args:
            texts: CSR of ones (texts, units).

        Returns:
            CSR of ones (texts, units).
        """
        return texts.maximum(_row_maximum(texts, self._spellings).ceil()).maximum((texts @ self._edits).sign())

    def overlap(self, a: Ints, b: Ints, *, numeric: bool | None = None) -> Overlap:
        """Compares pairs of titles.

        Args:
            a: positions of titles.
            b: positions of the others.
            numeric: only units with digits (True), only those without (False), or all.
        """
        own, total = self._weighted[numeric]
        in_b, in_a = (pair_products(own, self._explained, *pair) for pair in ((a, b), (b, a)))
        only = [np.maximum(total[one] - known, 0).astype(np.float32) for one, known in ((a, in_b), (b, in_a))]
        return Overlap(((in_a + in_b) / 2).astype(np.float32), *only)

    def differences(
        self,
        a: Ints,
        b: Ints,
        stated: tuple[Any, Any] | None = None,
        *,
        beside: Any = None,
        same: Literal["exact", "variants", "misspelt"] = "exact",
        numeric: bool = False,
    ) -> tuple[Floats, Floats]:
        """How many units each title has that the other lacks, however common they are (two arrays, (pairs,)).

        Words and codes written as one or as two are the same.

        Args:
            a: positions of titles.
            b: positions of the others.
            stated: units of a's and of b's title that the other topic states elsewhere, CSR of ones (pairs, units);
                none by default.
            beside: what each topic states besides its title, CSR of ones (topics, units); nothing by default.
            same: which units are the same: equal ones, also spelling variants of long words, or also words that
                differ by one edit.
            numeric: only numbers and codes.
        """
        known = {"exact": self._exact, "variants": self._loose, "misspelt": self._misspelt}[same]
        known = known if beside is None else known.maximum(beside)
        own = weighted(self.own, self._numeric) if numeric else self.own
        total = np.asarray(own.sum(axis=1)).ravel()
        missing = [total[one] - pair_products(own, known, one, other) for one, other in ((a, b), (b, a))]
        if stated is not None:
            missing[0] -= _beyond(stated[0], own, known, a, b)
            missing[1] -= _beyond(stated[1], own, known, b, a)
        return missing[0], missing[1]

    def adds(self, a: Ints, b: Ints, beside: Any) -> NDArray[np.bool_]:
        """Pairs of which one title alone has units that the other topic states nowhere, variants aside (pairs,).

        Args:
            a: positions of titles (pairs,).
            b: positions of the others (pairs,).
            beside: what each topic states besides its title, CSR of ones (topics, units).
        """
        missing = self.differences(a, b, beside=beside, same="variants")
        return np.asarray((missing[0] > 0) ^ (missing[1] > 0))

    def systematic(self, a: Ints, b: Ints, beside: Any) -> NDArray[np.bool_]:
        """Pairs of which one title adds a unit that titles with other units add, too (pairs,).

        Args:
            a: positions of titles in whose topics nothing else differs, so that they show what titles add (pairs,).
            b: positions of the others (pairs,).
            beside: what each topic states besides its title, CSR of ones (topics, units).
        """
        missing = self.differences(a, b, beside=beside, same="variants")
        found = np.zeros(len(a), bool)
        rows = np.flatnonzero((missing[0] > 0) ^ (missing[1] > 0))
        if not len(rows):
            return found
        longer = missing[0][rows] > 0
        more, less = np.where(longer, a[rows], b[rows]), np.where(longer, b[rows], a[rows])
        added = (self.own[more] - self.own[more].multiply(self._loose[less])).tocsr()
        added.eliminate_zeros()
        unit, pair = added.indices, np.repeat(np.arange(len(rows)), np.diff(added.indptr))
        bases = np.unique(np.stack([unit, self.codes[less[pair]]]), axis=1)
        often = np.bincount(bases[0], minlength=self.own.shape[1]) >= SYSTEMATIC
        found[rows[pair[often[unit]]]] = True
        return found

    def share_code(self, a: Ints, b: Ints) -> NDArray[np.bool_]:
        """Whether both titles have a code, written as one or as two, that no third title has (pairs,)."""
        return np.asarray(pair_products(self._codes, self._codes, a, b) > 0)

    def share_stem(self, a: Ints, b: Ints) -> NDArray[np.bool_]:
        """Whether one title has a code that the other has, too, or adds letters to, and no third title (pairs,)."""
        return np.asarray(pair_products(self._stems, self._stems, a, b) > 0)


def unit_rarity(cut: Sequence[Sequence[str]]) -> tuple[Any, Floats]:
    """The units of texts (CSR of ones, (texts, units)), and the rarity of each unit in nats (units,)."""
    own, _ = named_incidence(cut)
    return own, _rarity(_sums(own), len(cut))


def _rarity(frequency: Floats, texts: int) -> Floats:
    return np.log((texts + BACKGROUND + 1) / (frequency + 1.5)).astype(np.float32)


def _is_code(unit: str) -> bool:
    """Letters and digits mixed, or so many digits that the unit is no year; none is a number with decimals."""
    if len(unit) < _MIN_LENGTH or "." in unit:
        return False
    return _is_mixed(unit) or sum(char.isdigit() for char in unit) > _MIN_LENGTH


def _is_mixed(unit: str) -> bool:
    return 0 < sum(char.isdigit() for char in unit) < len(unit) and "." not in unit


def _compounds(titles: Sequence[str], column: dict[str, int]) -> tuple[Any, Any]:
    """Words and codes that titles also write as two: where (titles, units), and the two of each (units, units)."""
    pairs = ((row, one, other) for row, title in enumerate(titles) for one, other in pairwise(words(title)))
    found = [
        (row, *(column.get(part, -1) for part in (one + other, one, other)))
        for row, one, other in pairs
        if one + other in column
        and len(one + other) > _MIN_LENGTH
        and ((one + other).isalpha() or _is_mixed(one + other))
    ]
    rows, whole, one, other = np.array(found, np.int64).reshape(-1, 4).T
    written = _ones(rows, whole, (len(titles), len(column)))
    ends = np.concatenate([one, other])
    return written, _ones(np.tile(whole, 2)[ends >= 0], ends[ends >= 0], (len(column), len(column)))


def _beyond(beside: Any, own: Any, known: Any, one: Ints, other: Ints) -> Floats:
    """How many units of a title are stated beside the other title, but not in it (pairs,)."""
    pairs = np.flatnonzero(np.diff(beside.indptr))
    counted = beside[pairs].multiply(own[one[pairs]])
    beyond = np.zeros(len(one), np.float32)
    beyond[pairs] = (counted - counted.multiply(known[other[pairs]])).sum(axis=1).ravel()
    return beyond


def _of_two(matrix: Any, codes: NDArray[np.bool_]) -> Any:
    """Those codes that exactly two texts have."""
    return weighted(matrix, codes & (_sums(matrix) == _TWICE))


def _stems(vocabulary: Sequence[str], codes: NDArray[np.bool_]) -> Any:
    """Which code (rows) is another one (columns) with letters before or after it, or is the same."""
    sized = {unit: place for place, unit in enumerate(vocabulary) if _MIN_LENGTH < len(unit) <= _LONGEST_CODE}
    column = {unit: place for unit, place in sized.items() if codes[place]}
    found = [
        (place, column[part])
        for unit, place in column.items()
        for end in range(len(unit) + 1)
        for part, rest in ((unit[:end], unit[end:]), (unit[end:], unit[:end]))
        if part in column and (not rest or rest.isalpha())
    ]
    rows, columns = np.array(found, np.int64).reshape(-1, 2).T
    return _ones(rows, columns, (len(vocabulary), len(vocabulary)))


def _sums(matrix: Any) -> Floats:
    """How many texts have each unit (units,)."""
    return np.asarray(matrix.sum(axis=0)).ravel()


def _ones(rows: Ints, columns: Ints, shape: tuple[int, int]) -> Any:
    matrix = csr_matrix((np.ones(len(rows), np.float32), (rows, columns)), shape=shape)
    matrix.data[:] = 1
    return matrix


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


def _of_long_units(variants: Any, vocabulary: list[str]) -> Any:
    """The variants of units that are long enough for a difference of few letters to be one of spelling."""
    every = variants.tocoo()
    long = np.array([len(unit) >= _LONG for unit in vocabulary], dtype=bool)
    kept = (every.row == every.col) | (long[every.row] & long[every.col])
    return csr_matrix((every.data[kept], (every.row[kept], every.col[kept])), shape=every.shape)


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
