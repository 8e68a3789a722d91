"""Questions for what holds now: which they are, and the words in which a turn that answers one may put it.

"Where does Ines live?" asks for what Ines says of herself: "I live in Oslo". So turns are compared with "Where do I
live?", and words that only make it a question (*where*, *does*) are not looked for in them. Tenses, pronouns and these
words are English; other questions stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from memstate_core.retrieve.question.dates import named_spans

_VERB = re.compile(
    r"\b(?:what|who|where|which|how)(?P<short>['\u2019]s)\b|\b(?P<present>is|are|am|does|do|has|have|can)\b|"
    r"\b(?:did|was|were|had|would|will|could|might|should)\b",
    re.IGNORECASE,
)
_OF_SUBJECT = re.compile(r"\W*(?:who|(?:what|which)\s+\w+)\s+\w*[^\Ws]s\b", re.IGNORECASE)
"""A question for the subject of a verb in the present needs no auxiliary: "Which animal lives with Ines?" has none."""
_REQUEST = re.compile(
    r"\W*(?:please\s+)?(?:(?:te|reca)ll|give|show|remind|send|get|find|look up|i need|need)\b"
    r"|\W*(?:the\s+)?(?:[\w-]+\s+)?[\w-]+['\u2019]s?(?:\s+[\w-]+){1,4}\W*$"
    r"|.*\b(?:current|currently|now|nowadays|latest|up[- ]to[- ]date|these days|at (?:the moment|present))\b",
    re.IGNORECASE | re.DOTALL,
)
"""Without any verb of a question: "Give me Kate's number", "Kate's phone number", "current address"."""
_PAST_OR_QUESTION = re.compile(
    r"\b(?:when|why|who|whom|which|where|how|what|(?!need|feed|speed|seed)\w{2,}ed)\b", re.IGNORECASE
)

_EARLIER = re.compile(
    r"\b(?:before|previous|previously|earlier|former|formerly|first|originally|initially|in the past|used? to|ago|last|"
    r"once|yesterday)\b",
    re.IGNORECASE,
)
_FIRST_PERSON = {"does": "do", "is": "am", "has": "have"}
_QUESTION_WORDS = frozenset({
    "what", "when", "where", "which", "who", "whom", "whose", "why", "how", "do", "does", "did", "is", "are", "am",
    "was", "were", "has", "have", "had", "will", "would", "can", "could", "should", "may", "might", "been",
    "wher*", "whic*", "whos*", "woul*", "coul*", "shou*", "migh*",
})  # fmt: skip
"""Interrogatives and auxiliary verbs, and the stems of the longer ones, as `memstate_core.model.terms` cuts them."""


def asks_for_the_present(question: str, years: list[int]) -> bool:
    """Whether a question is in the present tense, or a request without a verb in the past, and names no earlier time.

    Args:
        question: the question.
        years: the years of the evidence, to which its dates may belong.
    """
    verb = _VERB.search(question)
    present = bool(verb["present"] or verb["short"]) if verb else _without_auxiliary(question)
    return present and not _EARLIER.search(question) and not named_spans(question, years)


def _without_auxiliary(question: str) -> bool:
    requested = _REQUEST.match(question) and not _PAST_OR_QUESTION.search(question)
    return bool(requested or _OF_SUBJECT.match(question))


def in_first_person(question: str, names: Iterable[str]) -> str:
    """A question as somebody with these names would ask it: "What is my job?"; without names it stays as it is."""
    either = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    if not either:
        return question
    name = rf"(?<!\w)(?:(?:{either})\s+)*(?:{either})"
    text = re.sub(rf"{name}['\u2019]s?(?!\w)", "my", question, flags=re.IGNORECASE)
    for third, first in _FIRST_PERSON.items():
        text = re.sub(rf"\b{third}(\s+){name}(?!\w)", rf"{first}\1I", text, flags=re.IGNORECASE)
        text = re.sub(rf"{name}(\s+){third}\b", rf"I\1{first}", text, flags=re.IGNORECASE)
    return re.sub(rf"{name}(?!\w)", "I", text, flags=re.IGNORECASE)


def without_question_words(terms: Sequence[str]) -> list[str]:
    """The terms of a question but for those that make it one; all of them if no other is left."""
    return [term for term in terms if term not in _QUESTION_WORDS] or list(terms)
