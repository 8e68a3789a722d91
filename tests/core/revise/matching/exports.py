"""Facts in two exports of one memory store, between which some of them changed: a changed fact is not its duplicate."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

Topic = dict[str, Any]

_FIRST = ("ana", "ben", "cleo", "dirk", "elif", "fumi", "gus", "hana", "ivo", "jun", "kai", "lea", "mona", "nils")
_LAST = ("abbot", "brandt", "castillo", "dvorak", "egger", "ferrari", "grieg", "huang", "jansen", "keller")
_WORDS = {
    "employer": ("acme", "globex", "initech", "umbrella", "hooli", "wonka"),
    "city": ("lisbon", "porto", "oslo", "austin", "kyoto", "graz", "lyon", "ghent"),
    "music": ("jazz", "techno", "folk", "baroque", "ska"),
    "drink": ("oat milk latte", "mint tea", "decaf", "black coffee"),
    "car": ("volvo v60", "fiat panda", "tesla model 3", "renault zoe"),
}
_NUMBERS: dict[str, Callable[[random.Random], str]] = {
    "phone": lambda chance: f"+49 {chance.randrange(150, 180)} {chance.randrange(10**6, 10**7)}",
    "birthday": lambda chance: f"{chance.randrange(1950, 2005)}-0{chance.randrange(1, 10)}-{chance.randrange(10, 29)}",
    "start of work": lambda chance: f"{chance.randrange(6, 11)}:{chance.choice(('00', '15', '30', '45'))}",
    "salary": lambda chance: str(chance.randrange(30, 120) * 1000),
}
ATTRIBUTES = (*_WORDS, *_NUMBERS)
_SAID = {"employer": "works at", "city": "lives in", "music": "listens to", "drink": "likes", "car": "drives a"}

FORMS: dict[str, Callable[[str, str, str], Topic]] = {
    "a value": lambda who, what, value: {"title": f"{who}: {what}", "fields": {"value": value}},
    "a category and a value": lambda who, what, value: {
        "title": f"{who}: {what}",
        "fields": {"category": what, "value": value},
    },
    "who, what and how sure": lambda who, what, value: {
        "title": f"{who}: {what}",
        "fields": {"person": who, "category": what, "confidence": "high", "value": value},
    },
    "a sentence": lambda who, what, value: {"title": f"{who}: {what}", "summary": _sentence(who, what, value)},
    "a sentence with generic fields": lambda who, what, value: {
        "title": f"{who}: {what}",
        "summary": _sentence(who, what, value),
        "fields": {"person": who, "category": what, "confidence": "high"},
    },
    "a title that many share": lambda who, what, value: {"title": what, "fields": {"person": who, "value": value}},
}
"""How a fact is written."""


def exports(form: str, changed: float, seed: int) -> tuple[list[Topic], list[str]]:
    """Topics of both exports, and what each states: equal for two that are duplicates.

    Args:
        form: one of FORMS.
        changed: the share of facts that changed between the exports.
        seed: of everything that is drawn.
    """
    chance = random.Random(seed)
    people = chance.sample([f"{first} {last}" for first in _FIRST for last in _LAST], 30)
    topics, stated = [], []
    for who in people:
        for what in ATTRIBUTES:
            before = after = _value(chance, what)
            while chance.random() < changed and after == before:
                after = _value(chance, what)
            for source, value in (("january", before), ("september", after)):
                if chance.random() < 0.85:
                    name = f"{chance.randrange(10**9):09}"
                    topics.append(FORMS[form](who, what, value) | {"id": name, "sources": [source]})
                    stated.append(f"{who} {what} {value}")
    return topics, stated


def _value(chance: random.Random, what: str) -> str:
    return chance.choice(_WORDS[what]) if what in _WORDS else _NUMBERS[what](chance)


def _sentence(who: str, what: str, value: str) -> str:
    return f"{who} {_SAID[what]} {value}" if what in _SAID else f"{what} of {who}: {value}"
