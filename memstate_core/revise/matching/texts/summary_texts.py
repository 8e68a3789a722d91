"""What is read of summaries to compare them, of each once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from memstate_core.revise.matching.arrays import Floats, named_incidence, weighted
from memstate_core.revise.matching.texts.marks import marks_of
from memstate_core.revise.matching.texts.tokens import is_number

RARE = 2
"""Summaries that have a word, up to which it is rare."""
UNCOMMON = 0.05
"""The share of summaries up to which a word is uncommon."""


class SummaryTexts:
    """The summaries of topics.

    Args:
        written: the summaries.
        cut: the units of each.

    Attributes:
        written: the summaries.
        every: their units, CSR of ones (topics, units).
        uncommon: those that are numbers, or that few summaries have, CSR of ones (topics, units).
        distinctive: those that are numbers or rare, CSR of ones (topics, units).
        size: how many units each has (topics,).
        marks: their marks.
    """

    def __init__(self, written: Sequence[str], cut: Sequence[Sequence[str]]) -> None:
        self.written = written
        self.every, vocabulary = named_incidence(cut)
        numeric = np.array([is_number(unit) for unit in vocabulary], bool)
        self.size: Floats = np.asarray(self.every.sum(axis=1)).ravel()
        frequency = np.asarray(self.every.sum(axis=0)).ravel()
        self.distinctive = weighted(self.every, numeric | (frequency <= RARE))
        self.uncommon = weighted(self.every, numeric | (frequency <= max(RARE, UNCOMMON * len(written))))
        self.marks = marks_of(written)
