"""What is read of the values of fields to compare them, of each distinct text once."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memstate_core.revise.matching.arrays import Floats, Ints, named_incidence, weighted
from memstate_core.revise.matching.texts.abbreviations import known_units
from memstate_core.revise.matching.texts.codes import whole_code
from memstate_core.revise.matching.texts.marks import marks_of
from memstate_core.revise.matching.texts.tokens import is_number, units
from memstate_core.revise.matching.texts.typed_dates import times
from memstate_core.revise.matching.texts.typed_values import amounts

Text = TypeVar("Text", pl.Expr, pl.Series)

LONG_NUMBER, LONG_CODE = 7, 6
"""Digits of a number, and letters and digits of a code without spaces, from which on they are written in groups."""
_VARIANT = 2
"""Letters of a word from which another spelling of it may be a variant; `b` is none of `a`."""
_DOTTED = r"(?:^|\D)\d\.\d|\d\.\d(?:\D|$)"
"""Versions and addresses, whose points separate numbers."""
_THOUSANDS = r"(\d),(\d{3}(?:\D|$))"
_RANGE = r"(\d)\s*[-\u2013]+\s*(\d)"


class FieldTexts:
    """The distinct values of fields as texts.

    Args:
        values: the text of each value (values,).

    Attributes:
        code: the position of each value among the distinct ones (values,).
        written: the distinct ones.
        every, numbers, words, letters: their units, those that are numbers or not, and words of one letter, CSR of ones
            (texts, units).
        size: how many units each has (texts,).
        figures: the share of numbers among them (texts,).
        known: the words that each has or abbreviates, CSR of ones (texts, units).
        squeezed: equal for texts with the same letters and digits (texts,).
        marks: their marks.
        read: what dates, times and amounts are compared by, a row each (columns of `times` and `amounts`).
    """

    def __init__(self, values: pl.Series) -> None:
        distinct = values.unique().sort()
        self.code: Ints = distinct.search_sorted(values).to_numpy().astype(np.int64)
        self.written: list[str] = distinct.to_list()
        cut = [units(text) for text in distinct.str.replace_all(_THOUSANDS, "$1$2").str.replace_all(_RANGE, "$1 $2")]
        self.every, vocabulary = named_incidence(cut)
        numeric = np.array([is_number(unit) for unit in vocabulary], bool)
        single = np.array([0 < len(unit) < _VARIANT for unit in vocabulary])
        self.numbers, self.words = (weighted(self.every, chosen) for chosen in (numeric, ~numeric))
        self.letters = weighted(self.words, single)
        self.size, count = (np.asarray(matrix.sum(axis=1)).ravel() for matrix in (self.every, self.numbers))
        self.figures: Floats = count / np.maximum(self.size, 1)
        self.known = known_units(self.written, self.words, vocabulary)
        self.marks = marks_of(self.written)
        self.read = pl.DataFrame({"text": distinct}).select(*times(pl.col("text")), *amounts(pl.col("text")))
        letters = squeezed(distinct)
        self.squeezed: Ints = letters.rank("dense").to_numpy().astype(np.int64)
        self._groups = _in_groups(distinct, letters)
        self._codes = pl.Series([whole_code(text) for text in self.written], dtype=pl.String)

    def regrouped(self, a: Ints, b: Ints) -> NDArray[np.bool_]:
        """Pairs with the same digits of a long number, or letters and digits of a code, in other groups (pairs,).

        Those of a telephone are written in many ways, as are codes of models: `M8162/59` and `M816259`.

        Args:
            a: positions of texts (pairs,).
            b: positions of the others (pairs,).
        """
        same = np.zeros(len(a), bool)
        for number, enough in self._groups:
            same |= (number[a] == number[b]) & enough[a] & enough[b]
        return same

    def other_code(self, a: Ints, b: Ints) -> NDArray[np.bool_]:
        """Pairs that are two codes of letters and digits, neither of which begins with the other (pairs,).

        Args:
            a: positions of texts (pairs,).
            b: positions of the others (pairs,).
        """
        both = pl.DataFrame({"one": self._codes.gather(a), "other": self._codes.gather(b)})
        one, other = pl.col("one"), pl.col("other")
        begins = one.str.starts_with(other) | other.str.starts_with(one)
        return both.select((~begins).fill_null(False)).to_series().to_numpy()


def squeezed(text: Text) -> Text:
    """A text's letters and digits, in lower case."""
    return text.str.to_lowercase().str.replace_all(r"[^\p{L}\p{N}]", "")


def _in_groups(texts: pl.Series, letters: pl.Series) -> list[tuple[Ints, NDArray[np.bool_]]]:
    """Equal numbers for texts with the same digits, and with the same letters and digits; and for which that counts."""
    digits, undotted = texts.str.replace_all(r"[^0-9]", ""), ~texts.str.contains(_DOTTED)
    code = letters.str.contains(r"\d") & letters.str.contains(r"\p{L}") & (letters.str.len_chars() >= LONG_CODE)
    long = digits.str.len_chars() >= LONG_NUMBER, code & ~texts.str.contains(r"\s")
    return [
        (some.rank("dense").to_numpy().astype(np.int64), (enough & undotted).to_numpy())
        for some, enough in zip((digits, letters), long, strict=True)
    ]
