"""Signs and symbols that make another thing of a word or number, and that units leave out.

A minus before a number, and a plus, minus or `#` after a word, count wherever they stand: `100` and `-100`, `C` and
`C++`, `A+` and `A-` differ. A currency, a comparison or a pictograph is often left out, so it counts where both texts
have one: `$500` and `€500`, `< 5` and `> 5`, a thumb up and a thumb down.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memstate_core.revise.matching.arrays import Ints, named_incidence, pair_products

_DASHES = str.maketrans("\u2212\u2013", "--")
_NUMBER = r"\d(?:[\d.,]*\d)?"
_TOKEN = re.compile(rf"[^\W\d_]+|{_NUMBER}")
_AFTER_WORD = re.compile(r"(?<![\w-])(?:([^\W\d_]+)(\+{1,2}|#)(?![\w+#-])|([^\W\d_]{1,2})(-)(?![\w-]))")
"""A minus may be a hyphen after any but the shortest words."""
_MINUS = re.compile(rf"(?<![\w.)\]%-])-({_NUMBER})")
_COMPARED = re.compile(rf"([<>\u2264\u2265]=?)\s*({_NUMBER})")
_MONEY = "$\u20ac\u00a3\u00a5\u20b9\u20bd\u20a9\u20ba\u20b4\u20ab\u20bf"
_CURRENCY = re.compile(rf"([{_MONEY}])\s?({_NUMBER})|({_NUMBER})\s?([{_MONEY}%])")
_MAY_MARK = re.compile(rf"[-+#<>\u2264\u2265{_MONEY}%]")
_NO_PICTURE = "\u00a9\u00ae\u00b0"
"""Symbols that say nothing about a thing: copyright, registered, degrees."""
_COUNTED = set("\u2605\u2606\u2b50\u25cf\u25cb")
"""Stars and dots, whose number is a rating."""
_Marks = dict[str, set[str]]


@dataclass(frozen=True)
class Marks:
    """The marks of some texts.

    Attributes:
        keys: which words and numbers each text has, of those that some text has with a mark (texts, words).
        marked: the same with their marks (texts, marked words).
    """

    keys: Any
    marked: Any


def marks_of(texts: Sequence[str]) -> Marks:
    """The marks of texts."""
    written = [text.casefold().translate(_DASHES) for text in texts]
    strict = [_strict(text) if _MAY_MARK.search(text) else {} for text in written]
    plain = [_unmarked(text, known) for text, known in zip(written, _among(written, strict), strict=True)]
    loose = [_loose(text) for text in written]
    found = [_joined(parts) for parts in zip(strict, plain, loose, strict=True)]
    keys, _ = named_incidence([list(marks) for marks in found])
    marked, _ = named_incidence([[f"{key} {''.join(sorted(marks))}" for key, marks in row.items()] for row in found])
    return Marks(keys, marked)


def differently_marked(marks: Marks, a: Ints, b: Ints) -> NDArray[np.bool_]:
    """Pairs of texts with the same word or number under other marks (pairs,).

    Args:
        marks: those of the texts.
        a: positions of texts (pairs,).
        b: positions of the others (pairs,).
    """
    if not marks.keys.nnz:
        return np.zeros(len(a), bool)
    return np.asarray(pair_products(marks.keys, marks.keys, a, b) > pair_products(marks.marked, marks.marked, a, b))


def _strict(text: str) -> _Marks:
    """Words and numbers with signs that count wherever they stand."""
    after = (groups for match in _AFTER_WORD.finditer(text) if (groups := [part for part in match.groups() if part]))
    return _joined([*({word: {sign}} for word, sign in after), *({number: {"-"}} for number in _MINUS.findall(text))])


def _among(written: Sequence[str], strict: Sequence[_Marks]) -> Iterator[set[str]]:
    """Of each text, the words and numbers that some text has with a sign."""
    known = set(chain.from_iterable(strict))
    return (known.intersection(_TOKEN.findall(text)) if known else set() for text in written)


def _unmarked(text: str, known: set[str]) -> _Marks:
    """Which of these words and numbers a text also has without a sign."""
    bare = _TOKEN.findall(_MINUS.sub(" ", _AFTER_WORD.sub(" ", text))) if known else ()
    return {token: {""} for token in known.intersection(bare)}


def _loose(text: str) -> _Marks:
    """Numbers with a comparison or currency, by which of the two; and the pictographs of a text."""
    found: list[_Marks] = []
    if _MAY_MARK.search(text):
        found += [{f"compared {number}": {sign}} for sign, number in _COMPARED.findall(text)]
        found += [{f"money {one or other}": {sign or after}} for sign, one, other, after in _CURRENCY.findall(text)]
    if not text.isascii():
        pictures = {char for char in text if _is_picture(char)}
        pictures |= {f"{char}{text.count(char)}" for char in pictures & _COUNTED}
        found += [{"pictures": pictures}] if pictures else []
    return _joined(found)


def _is_picture(char: str) -> bool:
    """Whether a symbol is a pictograph, or an arrow."""
    return "\u2190" <= char <= "\u21ff" or (unicodedata.category(char) == "So" and char not in _NO_PICTURE)


def _joined(parts: Sequence[_Marks]) -> _Marks:
    marks: _Marks = {}
    for part in parts:
        for key, signs in part.items():
            marks[key] = marks.get(key, set()) | signs
    return marks
