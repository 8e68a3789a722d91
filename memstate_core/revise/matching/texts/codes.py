"""Codes that exactly two titles share, such as those of models.

A code may end in letters that stand by themselves: `PR-1800/B` and `PR-1800 B` are `PR1800B`, and another model than
`PR-1800/W`, although both have `PR-1800`. Codes written as two words are the same as those written as one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, pairwise, zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memstate_core.revise.matching.arrays import Ints, named_incidence, ones, pair_products, weighted
from memstate_core.revise.matching.texts.tokens import units_in_order
from memstate_core.revise.matching.texts.unit_overlap import MIN_LENGTH, sums

ENDING = 3
"""Letters after a stroke up to which they belong to the code before it; after a space it is one letter."""
_TWICE, _LONGEST_CODE = 2, 32


class TitleCodes:
    """The codes of a set of titles.

    Args:
        titles: the titles.
    """

    def __init__(self, titles: Sequence[str]) -> None:
        own = [sorted({*codes(title)}) for title in titles]
        known = frozenset(chain.from_iterable(own))
        every = [sorted({*row, *_written_as_two(title, known)}) for row, title in zip(own, titles, strict=True)]
        held, vocabulary = named_incidence(every)
        self._codes = _of_two(held)
        self._stems = _of_two((held @ _stems(vocabulary)).sign())

    def shared(self, a: Ints, b: Ints) -> NDArray[np.bool_]:
        """Whether both titles have a code, written as one or as two, that no third title has (pairs,)."""
        return np.asarray(pair_products(self._codes, self._codes, a, b) > 0)

    def stems(self, a: Ints, b: Ints) -> NDArray[np.bool_]:
        """Whether one title has a code that the other has, too, or adds letters to, and no third title (pairs,)."""
        return np.asarray(pair_products(self._stems, self._stems, a, b) > 0)


def codes(title: str) -> Iterator[str]:
    """The codes of a title, each with the letters that end it."""
    parts = units_in_order(title)
    for word, following in zip_longest(parts, parts[1:], fillvalue=()):
        for part, after in zip_longest(word, word[1:], fillvalue=""):
            if _is_code(part):
                yield part + _ending(after, following)


def whole_code(text: str) -> str | None:
    """The code of letters and digits that a text is, in one way of writing; None where it says anything else."""
    found = [*codes(text)]
    only = len(found) == 1 and len(found[0]) == sum(map(str.isalnum, text)) and is_mixed(found[0])
    return found[0] if only else None


def is_mixed(unit: str) -> bool:
    """Whether a unit has letters and digits, and is no number with decimals."""
    return 0 < sum(char.isdigit() for char in unit) < len(unit) and "." not in unit


def _ending(after: str, following: Sequence[str]) -> str:
    """The letters that end a code.

    Args:
        after: what follows in the same word, if anything.
        following: the units of the next word.
    """
    if after:
        return after if after.isalpha() and len(after) <= ENDING else ""
    return following[0] if len(following) == 1 and len(following[0]) == 1 and following[0].isalpha() else ""


def _is_code(unit: str) -> bool:
    """Letters and digits mixed, or so many digits that the unit is no year; none is a number with decimals."""
    if len(unit) < MIN_LENGTH or "." in unit:
        return False
    return is_mixed(unit) or sum(char.isdigit() for char in unit) > MIN_LENGTH


def _written_as_two(title: str, known: frozenset[str]) -> Iterator[str]:
    """Known codes of letters and digits that a title writes as two units."""
    for one, other in pairwise(chain.from_iterable(units_in_order(title))):
        if one + other in known and len(one + other) > MIN_LENGTH and is_mixed(one + other):
            yield one + other


def _of_two(held: Any) -> Any:
    """Those codes that exactly two titles have."""
    return weighted(held, sums(held) == _TWICE)


def _stems(vocabulary: Sequence[str]) -> Any:
    """Which code (rows) is another one (columns) with letters before or after it, or is the same."""
    column = {code: place for place, code in enumerate(vocabulary)}
    found = [
        (place, column[part])
        for code, place in column.items()
        if MIN_LENGTH < len(code) <= _LONGEST_CODE
        for end in range(len(code) + 1)
        for part, rest in ((code[:end], code[end:]), (code[end:], code[:end]))
        if len(part) > MIN_LENGTH and part in column and (not rest or rest.isalpha())
    ]
    rows, columns = np.array(found, np.int64).reshape(-1, 2).T
    return ones(rows, columns, (len(vocabulary), len(vocabulary)))
