"""The passage of a long text that a question is about: a window of it, found by words alone.

A window is worth the sum, over the words of the question that it has, of one divided by how often the whole text has
the word, so that a word that is everywhere in the text decides nothing (inverse frequency, as in TF-IDF).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

_LEAD = 4
"""A passage begins a quarter of its length before the first word that counts."""

ELLIPSIS = "…"


def passage(text: str, words: Sequence[str], longest: int) -> str:
    """The window of a text that is worth most, the first one if several are; the beginning if none has a word.

    Args:
        text: the text.
        words: the terms of the question (`memstate_core.retrieve.question.question_language.content_terms`).
        longest: characters of the window. A text that is no longer is returned whole.

    Returns:
        The text from where the window begins, after an ellipsis unless that is the beginning.
    """
    if len(text) <= longest or not words:
        return text
    start = max(0, _first(text, words, longest - longest // _LEAD) - longest // _LEAD)
    if start == 0:
        return text
    space = re.compile(r"\s").search(text, start, start + longest // _LEAD)
    return ELLIPSIS + text[start if space is None else space.end() :]


def _pattern(term: str) -> str:
    """Matches a term: whole words, words that begin with a stem (`paint*`), or characters of scripts without spaces."""
    found = re.escape(term.removesuffix("*"))
    if not term.isascii():
        return found
    return rf"\b{found}" if term.endswith("*") else rf"\b{found}\b"


def _first(text: str, words: Sequence[str], width: int) -> int:
    """Where the first word of the best window is; 0 without any."""
    anyone = re.compile("|".join(map(_pattern, sorted(words, key=len, reverse=True))), re.IGNORECASE)
    hits = [(found.start(), found[0].lower()) for found in anyone.finditer(text)]
    often, inside = Counter(word for _, word in hits), Counter[str]()
    best, place, low = 0.0, 0, 0
    for at, word in hits:
        inside[word] += 1
        while at - hits[low][0] >= width:
            inside[hits[low][1]] -= 1
            low += 1
        while inside[hits[low][1]] > 1:  # a later one in the window counts as much
            inside[hits[low][1]] -= 1
            low += 1
        worth = sum(1 / often[each] for each, count in inside.items() if count)
        if worth > best + 1e-9:
            best, place = worth, hits[low][0]
    return place
