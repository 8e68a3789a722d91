"""Tokenisation of titles and texts: words, units and letter groups (character n-grams).

A unit is a word, or a code such as `KDL-40V4100`, without its inner punctuation, which varies between writers. A number
with leading zeros before a hyphen and a word, as in `007-Ballade`, is a number of its own, without the zeros, and `.5`
is 0.5.

Texts repeat the same words, so what is cut of a word is kept for the next text, of the last `_KEPT` words that are not
longer than `_LONGEST`: a text without spaces may be of any length.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache, wraps
from itertools import chain
from typing import TypeVar

T = TypeVar("T")

_SIGN_BLOCKS = range(0x0900, 0x1D00), range(0xA800, 0xAC00)
_WORD = re.compile(r"[^\W_]+")
_CODE = re.compile(r"[^\W_]+|(?<=\d)\.(?=\d)")
_ORDINAL = re.compile(r"\b0+([1-9]\d*)[-_.](?=[^\W\d])(?![^\W\d]{3,9}[-_.]\d)")  # but no date such as 01-May-2026
_BREAK = re.compile(r"[\s/,;:()\[\]{}\"|+&]+")
_LEADING_POINT = re.compile(r"(?<![\w.])\.(?=\d)")
_KEPT, _LONGEST, _LETTERS = 2**16, 40, 3
_ROMAN = re.compile(r"x{0,3}(ix|iv|v?i{0,3})")
_EDGE = ".'!?-_*#<>=~`\u2018\u2019\u201c\u201d"


def _is_accent(char: str) -> bool:
    """Whether a mark is an accent, or a point of Hebrew or Arabic; not a vowel or tone of a script that needs it."""
    combined = unicodedata.combining(char)
    return combined >= 200 or 10 <= combined <= 36 or combined == 1


_SIGNS = "".join(
    char
    for char in map(chr, chain.from_iterable(_SIGN_BLOCKS))
    if unicodedata.category(char) in ("Mn", "Mc") and not _is_accent(char)
)
"""Vowels, tones and other marks of the scripts of South and South East Asia, without which a word is another one."""
_SIGNED_WORD = re.compile(rf"(?:[^\W_]|[{_SIGNS}])+")
_SIGNED_CODE = re.compile(rf"(?:[^\W_]|[{_SIGNS}])+|(?<=\d)\.(?=\d)")
_JOINERS = re.compile("[\u200b-\u200d\u2060]")


def folded(text: str) -> str:
    """Case folded, compatibility forms resolved, accents dropped but where they make another letter."""
    if text.isascii():
        return text.casefold()
    composed = unicodedata.normalize("NFKC", _JOINERS.sub("", text)).casefold()
    return "".join(char if char.isascii() or _is_own_letter(char) else _without_accents(char) for char in composed)


def _is_own_letter(char: str) -> bool:
    """Whether a mark makes another letter: kana, and Cyrillic letters with a short sign or two dots over an i."""
    return "\u3040" <= char <= "\u30ff" or char in "\u0439\u045e\u0457"


def _without_accents(char: str) -> str:
    return "".join(part for part in unicodedata.normalize("NFKD", char) if not _is_accent(part))


def word_runs(text: str) -> list[str]:
    """Runs of letters and digits of a text as it is written, in order."""
    return (_WORD if text.isascii() else _SIGNED_WORD).findall(text)


def words(text: str) -> list[str]:
    """Runs of letters and digits, in order."""
    return word_runs(folded(text))


def _kept(cut: Callable[[str], T]) -> Callable[[str], T]:
    """A function of a word that keeps its results for words of usual length."""
    known = lru_cache(_KEPT)(cut)

    @wraps(cut)
    def of(word: str) -> T:
        return known(word) if len(word) <= _LONGEST else cut(word)

    return of


def units(text: str) -> list[str]:
    """Distinct words and codes, sorted; of a code's inner punctuation only decimal points stay."""
    return sorted(frozenset().union(*map(_units_of, text.split())))


def units_in_order(text: str) -> list[tuple[str, ...]]:
    """The units of each word of a text, in order; a word is what stands between white space."""
    return [_parts_of(written) for written in text.split()]


@_kept
def _units_of(written: str) -> frozenset[str]:
    """The units of a text without white space. Units never cross it, so they are all that a text has."""
    return frozenset(_parts_of(written))


@_kept
def _parts_of(written: str) -> tuple[str, ...]:
    """The units of a text without white space, in order."""
    found: list[str] = []
    for part in _BREAK.split(_LEADING_POINT.sub("0.", _ORDINAL.sub(r"\1 ", folded(written)))):
        stripped = part.strip(_EDGE)
        if any(char.isdigit() for char in stripped):
            found.append("".join((_CODE if stripped.isascii() else _SIGNED_CODE).findall(stripped)))
        else:
            found.extend(word_runs(stripped))
    return tuple(unit for unit in found if unit)


@_kept
def is_number(unit: str) -> bool:
    """Whether a unit counts as a number or code: it has a digit, or is a Roman numeral of two letters or more."""
    return any(char.isdigit() for char in unit) or (len(unit) > 1 and _ROMAN.fullmatch(unit) is not None)


def letter_groups(text: str) -> list[str]:
    """Overlapping groups of three letters of each word, its ends marked."""
    return list(chain.from_iterable(map(_letter_groups_of, words(text))))


@_kept
def _letter_groups_of(word: str) -> tuple[str, ...]:
    marked = f" {word} "
    return tuple(marked[i : i + _LETTERS] for i in range(max(1, len(marked) - _LETTERS + 1)))


@_kept
def unit_groups(unit: str) -> tuple[str, ...]:
    """Groups of two and three letters of one unit, to detect spelling variants."""
    marked = f" {unit} "
    return tuple(marked[i : i + size] for size in (2, 3) for i in range(len(marked) - size + 1))
