"""Units that one title has and another lacks, however common they are.

Words and codes written as one or as two are the same, and spelling variants of long words may be.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from memstate_core.revise.matching.arrays import Floats, Ints, ones, pair_products, weighted
from memstate_core.revise.matching.texts.codes import is_mixed
from memstate_core.revise.matching.texts.edits import one_edit
from memstate_core.revise.matching.texts.tokens import words
from memstate_core.revise.matching.texts.unit_overlap import MIN_LENGTH, UnitIndex, row_maximum

SYSTEMATIC = 2
"""Titles to which a unit is added, from which on it distinguishes things."""
_LONG = 6


class UnitDifferences:
    """The units of a set of titles, ready to find what each of a pair lacks.

    Args:
        index: the units of the titles.
        titles: the titles.
    """

    def __init__(self, index: UnitIndex, titles: Sequence[str]) -> None:
        own, vocabulary = index.own, list(index.column)
        self._index = index
        written, parts = _compounds(titles, index.column)
        self._exact = own.maximum(written).maximum((own @ parts).sign())
        self._spellings = _of_long_units(index.variants, vocabulary)
        self._edits = ones(*one_edit(vocabulary), (len(vocabulary), len(vocabulary)))
        self._loose = self._exact.maximum(row_maximum(own, self._spellings).ceil())
        self._misspelt = self._exact.maximum(self.misspelt(own))

    def misspelt(self, texts: Any) -> Any:
        """Texts with the spelling variants of their units, and with words that differ by one edit.

        Args:
            texts: CSR of ones (texts, units).

        Returns:
            CSR of ones (texts, units).
        """
        return texts.maximum(row_maximum(texts, self._spellings).ceil()).maximum((texts @ self._edits).sign())

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
        own = weighted(self._index.own, self._index.numeric) if numeric else self._index.own
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
        added = (self._index.own[more] - self._index.own[more].multiply(self._loose[less])).tocsr()
        added.eliminate_zeros()
        unit, pair = added.indices, np.repeat(np.arange(len(rows)), np.diff(added.indptr))
        bases = np.unique(np.stack([unit, self._index.codes[less[pair]]]), axis=1)
        often = np.bincount(bases[0], minlength=self._index.own.shape[1]) >= SYSTEMATIC
        found[rows[pair[often[unit]]]] = True
        return found


def _compounds(titles: Sequence[str], column: dict[str, int]) -> tuple[Any, Any]:
    """Words and codes that titles also write as two: where (titles, units), and the two of each (units, units)."""
    pairs = ((row, one, other) for row, title in enumerate(titles) for one, other in pairwise(words(title)))
    found = [
        (row, *(column.get(part, -1) for part in (one + other, one, other)))
        for row, one, other in pairs
        if one + other in column
        and len(one + other) > MIN_LENGTH
        and ((one + other).isalpha() or is_mixed(one + other))
    ]
    rows, whole, one, other = np.array(found, np.int64).reshape(-1, 4).T
    written = ones(rows, whole, (len(titles), len(column)))
    ends = np.concatenate([one, other])
    return written, ones(np.tile(whole, 2)[ends >= 0], ends[ends >= 0], (len(column), len(column)))


def _beyond(beside: Any, own: Any, known: Any, one: Ints, other: Ints) -> Floats:
    """How many units of a title are stated beside the other title, but not in it (pairs,)."""
    pairs = np.flatnonzero(np.diff(beside.indptr))
    counted = beside[pairs].multiply(own[one[pairs]])
    beyond = np.zeros(len(one), np.float32)
    beyond[pairs] = (counted - counted.multiply(known[other[pairs]])).sum(axis=1).ravel()
    return beyond


def _of_long_units(variants: Any, vocabulary: list[str]) -> Any:
    """The variants of units that are long enough for a difference of few letters to be one of spelling."""
    every = variants.tocoo()
    long = np.array([len(unit) >= _LONG for unit in vocabulary], dtype=bool)
    kept = (every.row == every.col) | (long[every.row] & long[every.col])
    return csr_matrix((every.data[kept], (every.row[kept], every.col[kept])), shape=every.shape)
