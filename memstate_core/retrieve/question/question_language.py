"""The language in which a question is written, as far as its dates and its content words need to be known.

Counted are the stop words of each language (the package `stop-words`). English wins a tie unless all its words are
those of the other language, too, so that no English question is read as one in another. Chinese is written without
spaces and known by its characters.

The English list of the package holds 1,300 words, many of which are words of other languages (*que*, *na*), so English
has a list of its own: what questions consist of besides their subject.
"""

from __future__ import annotations

import re
from functools import lru_cache

from memstate_core.model.terms import question_terms

ENGLISH, CHINESE = "en", "zh"
_ENGLISH = (
    "a", "about", "after", "all", "an", "and", "any", "are", "as", "at", "be", "because", "been", "before", "being",
    "between", "both", "but", "by", "can", "could", "did", "do", "does", "during", "each", "every", "for", "from",
    "had", "has", "have", "having", "he", "her", "hers", "him", "his", "how", "i", "if", "in", "into", "is", "it",
    "its", "me", "mine", "more", "most", "much", "my", "near", "of", "off", "on", "one", "or", "other", "our",
    "out", "over", "she", "should", "since", "so", "some", "than", "that", "the", "their", "them", "then", "there",
    "these", "they", "this", "those", "through", "to", "under", "until", "up", "us", "was", "we", "were", "what",
    "when", "where", "which", "while", "who", "whom", "whose", "why", "will", "with", "would", "you", "your",
)  # fmt: skip
_WORD = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)*")
_HAN = re.compile(r"[\u3400-\u9fff]")
_OTHERS = re.compile(r"[\u3040-\u30ff\uac00-\ud7af]")
"""Kana and Hangul, which languages have that share characters with Chinese."""

_UNSPACED = frozenset({CHINESE, "ja", "ko"})


def languages_of(text: str) -> tuple[str, ...]:
    """The languages that a question may be in, as ISO 639-1 codes: the best one and those that tie with it.

    Args:
        text: a question.

    Returns:
        Nothing for English, and nothing where no stop word of any language was found.
    """
    if _HAN.search(text) and not _OTHERS.search(text) and not _in(ENGLISH, text):
        return (CHINESE,)
    return tuple(language for language in _most(text) if language != ENGLISH)


def content_terms(question: str) -> list[str]:
    """The terms of a question but for the stop words of its languages; all of them if no other is left."""
    languages = frozenset(languages_of(question) or (ENGLISH,))
    kept = _WORD.sub(lambda word: " " if languages & _lists().get(word[0].lower(), frozenset()) else word[0], question)
    return question_terms(kept) or question_terms(question)


def _most(text: str) -> list[str]:
    """The languages with most stop words in a text; English alone if it has as many, one of them its own."""
    found: dict[str, set[str]] = {}
    for word in _words(text):
        for language in _lists().get(word, ()):
            found.setdefault(language, set()).add(word)
    most = max(map(len, found.values()), default=0)
    best = sorted(language for language, words in found.items() if len(words) == most)
    english = found.get(ENGLISH, set())
    return [each for each in best if english <= found[each]] if len(english) == most else best


def _in(language: str, text: str) -> bool:
    return any(language in _lists().get(word, ()) for word in _words(text))


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


@lru_cache(maxsize=1)
def _lists() -> dict[str, frozenset[str]]:
    """The languages of each stop word."""
    from stop_words import LANGUAGE_MAPPING, get_stop_words

    languages: dict[str, set[str]] = {}
    for code in sorted(LANGUAGE_MAPPING.keys() - _UNSPACED):
        for entry in _ENGLISH if code == ENGLISH else get_stop_words(code):
            for word in _words(entry):
                languages.setdefault(word, set()).add(code)
    return {word: frozenset(codes) for word, codes in languages.items()}
