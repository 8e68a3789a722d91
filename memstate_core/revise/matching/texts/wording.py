"""What texts of almost the same words say otherwise: in another order, with other accents, or denied.

`Ann owes Bob 20` and `Bob owes Ann 20` have the same words, `3-4` and `34` the same digits, `ano` and `año` the same
letters; `allergic` and `not allergic` differ by a denial, `The server is up` and `The server is down` by a word in
place of another. Names are inverted at a comma (`Smith, John`) and lists are put in any order, so these are no other
order.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from memstate_core.revise.matching.arrays import Ints, named_incidence, pair_products
from memstate_core.revise.matching.texts.edits import MIN_LETTERS
from memstate_core.revise.matching.texts.tokens import folded, is_number, word_runs, words

Flags = NDArray[np.bool_]

IN_PLACE = 2
"""Words of a text in place of others up to which the rest says that both are of one template."""
_PART = re.compile(r"\s*[,;&+]\s*|\s+and\s+")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}\b)")
_BETWEEN = re.compile(r"\s[-\u2013\u2014>/:]+\s|\w[/:>]\w|[\u2190-\u21ff]")
"""Signs between two things that an order distinguishes, as the ends of a way."""
_CONTRACTED = re.compile(r"n['\u2019]t\b", re.IGNORECASE)
_DENIALS = frozenset(
    {"no", "not", "never", "none", "nothing", "without", "cannot"}
    | {"nicht", "kein", "keine", "keinen", "keinem", "keiner", "keines", "nie", "niemals", "ohne"}
    | {"pas", "jamais", "sans", "nunca", "sin", "non", "nao", "niet", "geen", "nooit", "zonder"}
    | {"inte", "ikke", "utan", "uten", "nigdy", "bez"}
    | {"\u043d\u0435", "\u043d\u0435\u0442", "\u0431\u0435\u0437", "\u043d\u0438\u043a\u043e\u0433\u0434\u0430"}
    | {"\u0644\u0627", "\u0644\u064a\u0633", "\u0644\u0645", "\u0928\u0939\u0940\u0902"}
)
"""Words that deny what the others say, without accents."""


def rearranged(texts: Sequence[str], a: Ints, b: Ints, *, names: bool = False) -> Flags:
    """Pairs of texts with their words or numbers in another order, of those with the same ones.

    Args:
        texts: the texts.
        a: positions of texts (pairs,).
        b: positions of the others (pairs,).
        names: whether they may be names: inverted without a comma, and listed in a format of their own.
    """
    rows = np.unique(np.concatenate([a, b])).astype(np.int64)
    cut = [words(_THOUSANDS.sub("", texts[row])) for row in rows]
    number: dict[str, int] = {}
    spelled = np.array([number.setdefault("".join(_spaced(row)), len(number)) for row in cut], np.int64)
    one, other = np.searchsorted(rows, a), np.searchsorted(rows, b)
    found = spelled[one] != spelled[other]
    for at in np.flatnonzero(found):
        written = texts[a[at]], texts[b[at]]
        found[at] = not (
            _in_order(cut[one[at]], cut[other[at]]) or _listed(*written) or (names and _are_names(*written))
        )
    return np.asarray(found)


def _spaced(cut: Sequence[str]) -> list[str]:
    """Words with no space between them, since they are written as one or two, but between two numbers."""
    gaps = ["\0" if one[-1].isdigit() and other[0].isdigit() else "" for one, other in pairwise(cut)]
    return [part + gap for part, gap in zip(cut, [*gaps, ""], strict=True)] if cut else []


def _in_order(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether numbers, and words that both have once, stand in the same order."""
    numbers = [[word for word in cut if word[0].isdigit()] for cut in (one, other)]
    counts = Counter(one), Counter(other)
    once = {word for word in counts[0] if counts[0][word] == counts[1][word] == 1}
    kept = [[word for word in cut if word in once] for cut in (one, other)]
    return numbers[0] == numbers[1] and kept[0] == kept[1]


def _listed(one: str, other: str) -> bool:
    """Whether the parts of a list stand in another order, or a text is inverted at its only comma; not of numbers."""
    parts = [[" ".join(words(part)) for part in _PART.split(folded(text))] for text in (one, other)]
    if any(part.replace(" ", "").isdigit() for part in parts[0] + parts[1]):
        return False
    whole = [" ".join(row) for row in parts]
    turned = [" ".join(row[::-1]) if len(row) == 2 else None for row in parts]
    return sorted(parts[0]) == sorted(parts[1]) or turned[0] == whole[1] or turned[1] == whole[0]


def _are_names(one: str, other: str) -> bool:
    """Whether two texts without numbers are lists, or one is the other with its beginning at the end."""
    if any(char.isdigit() for char in one):
        return False
    if any(_PART.search(text) for text in (one, other)):
        return True
    begun, cut = words(one), words(other)
    linked = any(_BETWEEN.search(text) for text in (one, other))
    return not linked and any(begun[at:] + begun[:at] == cut for at in range(1, len(begun)))


def differently_accented(texts: Sequence[str], a: Ints, b: Ints) -> Flags:
    """Pairs of texts that have the same word with other accents.

    Args:
        texts: the texts.
        a: positions of texts (pairs,).
        b: positions of the others (pairs,).
    """
    found = np.zeros(len(a), bool)
    plain = np.array([text.isascii() for text in texts], bool)
    some = np.flatnonzero(~(plain[a] & plain[b]))
    rows, ends = np.unique(np.concatenate([a[some], b[some]]), return_inverse=True)
    forms = [set(word_runs(unicodedata.normalize("NFKC", texts[row]).casefold())) for row in rows]
    accented = {form for row in forms for form in row if not form.isascii() and folded(form) != form}
    known = accented | {folded(form) for form in accented}
    written = [sorted(row & known) for row in forms]
    plainly = [sorted({folded(form) for form in row}) for row in written]
    (keys, _), (exact, _) = named_incidence(plainly), named_incidence(written)
    one, other = ends[: len(some)], ends[len(some) :]
    found[some] = pair_products(keys, keys, one, other) > pair_products(exact, exact, one, other)
    return found


def negated(texts: Sequence[str], a: Ints, b: Ints) -> Flags:
    """Pairs of texts of which one denies more often than the other.

    Args:
        texts: the texts.
        a: positions of texts (pairs,).
        b: positions of the others (pairs,).
    """
    rows, ends = np.unique(np.concatenate([a, b]), return_inverse=True)
    count = np.array([_denials(texts[row]) for row in rows], np.int64)[ends]
    return np.asarray(count[: len(a)] != count[len(a) :])


def _denials(text: str) -> int:
    """How many words of a text deny it: not `No. 5`, but the `n't` of `isn't`."""
    cut = words(text)
    numbered = sum(one in _DENIALS and other[0].isdigit() for one, other in pairwise(cut))
    return sum(word in _DENIALS for word in cut) - numbered + len(_CONTRACTED.findall(text))


def in_place(texts: Sequence[str], a: Ints, b: Ints) -> Flags:
    """Pairs of texts of as many words, of which some stand in place of others and the rest is the same.

    Args:
        texts: the texts.
        a: positions of texts (pairs,).
        b: positions of the others (pairs,).
    """
    cut = {row: words(texts[row]) for row in {*a.tolist(), *b.tolist()}}
    return np.array([_replaces(cut[one], cut[other]) for one, other in zip(a.tolist(), b.tolist(), strict=True)], bool)


def _replaces(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether few words of two texts differ, none a misspelling or beginning of the other, and the rest is equal."""
    differing = [pair for pair in zip(one, other, strict=False) if pair[0] != pair[1]]
    few = len(one) == len(other) and len(differing) <= IN_PLACE
    return few and not any(_spells(*pair) or _spells(*reversed(pair)) for pair in differing)


def _spells(short: str, word: str) -> bool:
    """Whether a word is the beginning of another one that is no number, or a long one differs from it by one edit."""
    if word.startswith(short):
        return not is_number(word)
    start = next((at for at, pair in enumerate(zip(short, word, strict=False)) if len(set(pair)) > 1), len(short))
    rest, whole = short[start:], word[start:]
    edited = rest[1:] == whole[1:] or rest == whole[1:] or (rest[:2] == whole[:2][::-1] and rest[2:] == whole[2:])
    return min(len(short), len(word)) >= MIN_LETTERS and edited
