"""People of one list, of whom some are in it twice with errors: nothing in the list shows that these are errors."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

Topic = dict[str, Any]

_SYLLABLES = ("ba", "cho", "dri", "el", "fa", "gor", "hi", "jen", "kle", "lo", "mi", "nu", "pra", "qui", "ro", "sten")


def people(count: int, twice: int, seed: int = 0) -> list[Topic]:
    """So many people, the first of whom follow a second time, each with a wrong digit in two fields."""
    chance = random.Random(seed)
    first = [_person(chance) for _ in range(count)]
    return [*first, *(_erring(person, chance) for person in first[:twice])]


def true_pairs(count: int, twice: int) -> set[tuple[int, int]]:
    """The positions of each person who is in such a list twice."""
    return {(place, count + place) for place in range(twice)}


def _person(chance: random.Random) -> Topic:
    fields = {
        "born": f"{chance.randrange(1930, 2010)}-{chance.randrange(1, 13):02}-{chance.randrange(1, 29):02}",
        "phone": f"0{chance.randrange(10**8, 10**9)}",
        "street": f"{_word(chance)} street {chance.randrange(1, 200)}",
        "town": _word(random.Random(chance.randrange(40))),
        "insurance": f"{_word(chance)[:2]}{chance.randrange(10**5, 10**6)}",
    }
    return {"title": f"{_word(chance)} {_word(chance)}".title(), "fields": fields}


def _erring(person: Topic, chance: random.Random) -> Topic:
    wrong = chance.sample(("born", "phone", "street", "insurance"), 2)
    fields = {name: _mistyped(value, chance) if name in wrong else value for name, value in person["fields"].items()}
    return person | {"fields": fields}


def _mistyped(value: str, chance: random.Random) -> str:
    """The value with another last digit."""
    return value[:-1] + chance.choice([digit for digit in "123456789" if digit != value[-1]])


def _word(chance: random.Random) -> str:
    return "".join(chance.choices(_SYLLABLES, k=3))


def observations(topics: Sequence[Topic], prefix: str) -> dict[str, Topic]:
    """The topics by name, with fields as observations have them."""
    return {
        f"{prefix}{place:04}": topic
        | {"fields": [{"name": name, "value": value} for name, value in topic["fields"].items()]}
        for place, topic in enumerate(topics)
    }
