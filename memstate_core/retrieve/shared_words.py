"""How much the words weigh that two turns share: one that contradicts another often names the same thing.

A word weighs its idf in the scope. Words of a sentence that both turns contain do not count: it is repeated, and
replaces nothing. What was read of a turn is kept, since the same turns come first for many questions.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import polars as pl

from memstate_core.retrieve.index.windows import Floats

LONGEST = 2000
"""How many characters of a turn are read."""

_WORD = re.compile(r"\w+")
_END = re.compile(r"[.!?\u2026]+\s+|\s*[\r\n]+\s*")

Units = npt.NDArray[np.int64]
"""Words and sentences, numbered."""

Weigh = Callable[[list[str]], npt.NDArray[np.float64]]
"""The idf of words."""


class SharedWords:
    """The words of a scope's turns.

    Args:
        texts: the text of each row (n).
        weigh: the idf of words in the scope.
    """

    def __init__(self, texts: pl.Series, weigh: Weigh) -> None:
        self._texts, self._weigh = texts, weigh
        self._numbers: dict[str | tuple[str, ...], int] = {}
        self._weights: list[float] = []
        self._names: list[str | tuple[str, ...]] = []
        self._units: dict[int, Units] = {}

    def between(self, some: npt.NDArray[np.intp], others: npt.NDArray[np.intp]) -> Floats:
        """The weight of the words that each of some rows (m) shares with each of others (n) (float32, m x n)."""
        said = [self._of(row) for row in (*some.tolist(), *others.tolist())]
        if not said:
            return np.zeros((0, 0), dtype=np.float32)
        units, columns, counts = np.unique(np.concatenate(said), return_inverse=True, return_counts=True)
        places = np.repeat(np.arange(len(said)), [len(each) for each in said])
        has = np.zeros((len(said), len(units)), dtype=np.float32)
        has[places, columns] = 1
        has = has[:, counts > 1]
        weighed = has * np.array(self._weights, dtype=np.float32)[units[counts > 1]]
        shared: Floats = np.matmul(has[None, : len(some)], weighed[len(some) :, :, None])[:, :, 0].T
        return shared

    def of(self, rows: npt.NDArray[np.intp], least: float) -> list[str]:
        """The distinct words of some rows that weigh at least so much."""
        units = np.unique(np.concatenate([self._of(row) for row in rows.tolist()])) if len(rows) else ()
        return [name for unit in units if isinstance(name := self._names[unit], str) and self._weights[unit] >= least]

    def _of(self, row: int) -> Units:
        """The words and sentences of a row, each once."""
        known = self._units.get(row)
        if known is None:
            sentences = [tuple(_WORD.findall(part)) for part in _END.split((self._texts[row] or "")[:LONGEST].lower())]
            words = sorted({word for sentence in sentences for word in sentence})
            idf = dict(zip(words, self._weigh(words).tolist(), strict=True)) if words else {}
            units = [self._number(word, idf[word]) for word in words]
            units += [self._number(each, -sum(idf[word] for word in set(each))) for each in set(sentences) if each]
            known = self._units[row] = np.array(units, dtype=np.int64)
        return known

    def _number(self, unit: str | tuple[str, ...], weight: float) -> int:
        number = self._numbers.setdefault(unit, len(self._weights))
        if number == len(self._weights):
            self._weights.append(weight)
            self._names.append(unit)
        return number
