"""How much the words weigh that two turns share: one that contradicts another often names the same thing.

A word weighs its idf in the scope. Words of a sentence that both turns contain do not count: it is repeated, and
replaces nothing. What was read of a turn is kept, since the same turns come first for many questions.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from threading import Lock

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
        self._reading = Lock()

    def between(self, some: npt.NDArray[np.intp], others: npt.NDArray[np.intp]) -> Floats:
        """The weight of the words that each of some rows (m) shares with each of others (n) (float32, m x n)."""
        first, second = ([self._of(row) for row in rows.tolist()] for rows in (some, others))
        if not first or not second:
            return np.zeros((len(first), len(second)), dtype=np.float32)
        known = np.unique(np.concatenate(first))
        weights = np.array([self._weights[unit] for unit in known.tolist()], dtype=np.float32)
        have, had = _incidence(second, known), _incidence(first, known) * weights
        shared: Floats = np.matmul(have[None, :, :], had[:, :, None])[:, :, 0]  # small products, not for threads
        return shared

    def of(self, row: int, least: float) -> list[str]:
        """The words of a row that weigh at least so much."""
        units = self._of(row).tolist()
        return [name for unit in units if isinstance(name := self._names[unit], str) and self._weights[unit] >= least]

    def _of(self, row: int) -> Units:
        """The words and sentences of a row, each once, ascending by number."""
        known = self._units.get(row)
        if known is None:
            with self._reading:
                known = self._units[row] = self._read(self._texts[row] or "")
        return known

    def _read(self, text: str) -> Units:
        sentences = {tuple(_WORD.findall(part)) for part in _END.split(text[:LONGEST].lower())}
        self._weigh_new(sorted({word for sentence in sentences for word in sentence}))
        units = {self._numbers[word] for sentence in sentences for word in sentence}
        return np.array(sorted(units | {self._sentence(each) for each in sentences}), dtype=np.int64)

    def _weigh_new(self, words: list[str]) -> None:
        new = [word for word in words if word not in self._numbers]
        for word, weight in zip(new, self._weigh(new).tolist() if new else (), strict=True):
            self._add(word, weight)

    def _sentence(self, sentence: tuple[str, ...]) -> int:
        """The number of a sentence, which takes the weight of its words away."""
        if sentence not in self._numbers:
            self._add(sentence, -sum(self._weights[self._numbers[word]] for word in set(sentence)))
        return self._numbers[sentence]

    def _add(self, unit: str | tuple[str, ...], weight: float) -> None:
        self._numbers[unit] = len(self._weights)
        self._weights.append(weight)
        self._names.append(unit)


def _incidence(said: list[Units], known: Units) -> Floats:
    """Whether each turn (n) has each of the known units (m), 1 or 0 (float32, n x m)."""
    units = np.concatenate(said)
    turns = np.repeat(np.arange(len(said)), [len(each) for each in said])
    places = np.minimum(np.searchsorted(known, units), len(known) - 1)
    found = known[places] == units if len(known) else np.zeros(len(units), dtype=np.bool_)
    has = np.zeros((len(said), len(known)), dtype=np.float32)
    has[turns[found], places[found]] = 1
    return has
