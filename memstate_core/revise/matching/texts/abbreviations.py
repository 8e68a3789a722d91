"""Which words of a text abbreviate those of another one: beginnings (`Trans.`), and initials in one word (`VLDB`)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np
from scipy.sparse import csr_matrix

from memstate_core.revise.matching.arrays import incidence
from memstate_core.revise.matching.texts.tokens import folded, word_runs

MOST_INITIALS = 5
"""Letters up to which a word in capitals may be the initials of successive words."""
_PART = re.compile(r"[,;&]")


def known_units(texts: Sequence[str], own: csr_matrix, vocabulary: Sequence[str]) -> csr_matrix:
    """The units that each text has or abbreviates, and those that abbreviate its own (CSR of ones, (texts, units)).

    `M. Jones` knows `Mary`, and `Mary Ann Jones` knows `M` and `MA`.

    Args:
        texts: the texts as they are written.
        own: their units, CSR of ones (texts, units).
        vocabulary: the units.
    """
    column = {unit: place for place, unit in enumerate(vocabulary)}
    begun = (own @ _beginnings(vocabulary, column)).sign().tocsr()
    capitals = _in_capitals(texts, column)
    runs = [sorted(capitals & {*_initials(text)}) for text in texts] if capitals else [[] for _ in texts]
    return begun.maximum(incidence(runs, column)).tocsr()


def _beginnings(vocabulary: Sequence[str], column: dict[str, int]) -> csr_matrix:
    """Which units are themselves, or begin with or are the beginning of each other (units, units)."""
    found = [
        (place, column[unit[:end]])
        for place, unit in enumerate(vocabulary)
        for end in range(1, len(unit) + 1)
        if unit[:end] in column
    ]
    rows, columns = np.array(found, np.int64).reshape(-1, 2).T
    ones = csr_matrix((np.ones(len(rows), np.float32), (rows, columns)), shape=(len(vocabulary),) * 2)
    return ones.maximum(ones.T.tocsr())


def _in_capitals(texts: Sequence[str], column: dict[str, int]) -> set[str]:
    """Units of a few letters that are mostly written in capitals, but in texts of several words all of which are."""
    cut = [word_runs(text) for text in texts]
    mixed = chain.from_iterable(
        row for row, text in zip(cut, texts, strict=True) if len(row) == 1 or not text.isupper()
    )
    every, upper = Counter[str](), Counter[str]()
    for word, count in Counter(mixed).items():
        every[folded(word)] += count
        upper[folded(word)] += count * word.isupper()
    few = (unit for unit in upper if 1 < len(unit) <= MOST_INITIALS and unit.isalpha() and unit in column)
    return {unit for unit in few if 2 * upper[unit] > every[unit]}


def _initials(text: str) -> Iterator[str]:
    """The initials of successive words of each part of a list, in lower case, with and without words in lower case."""
    for part in _PART.split(text):
        written = word_runs(part)
        for some in (written, [word for word in written if not word.islower()]):
            letters = "".join(folded(word)[:1] for word in some)
            for size in range(2, MOST_INITIALS + 1):
                yield from (letters[at : at + size] for at in range(len(letters) - size + 1))
