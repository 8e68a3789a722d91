"""Things of one text that one value distinguishes stay apart, though it is written in ways that cannot be compared."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from tests.core.revise.matching.corpora import dedupe
from tests.core.revise.matching.families import Store
from tests.core.revise.matching.namesakes import counted_pairs

Writer = Callable[[int, Random], str]
WORDS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September")


def money(value: int, chance: Random) -> str:
    euros, cents = divmod(value * 37, 100)
    return chance.choice(
        (f"\u20ac{euros}.{cents:02}", f"EUR {euros}.{cents:02}", f"{euros},{cents:02} paid by card in June")
    )


def words(value: int, chance: Random) -> str:
    one, other = value % 12, value // 12 % 12
    said = f"the {WORDS[one]} of {WORDS[other]} as usual"
    return chance.choice((f"{one + 1}/{other + 1}", said, f"{WORDS[one]}-{WORDS[other]}"))


def months(value: int, chance: Random) -> str:
    year, month = 1990 + value // 9 % 30, value % 9
    period = f"billing period {month + 1:02}/{year}, payable within two weeks"
    return chance.choice((f"{MONTHS[month]} {year}", f"{year}-{month + 1:02}", period))


WRITERS = (money, words, months)


def bills(seed: int, write: Writer, recurring: float, series: int = 500) -> Store:
    """Bills with one title, summary and customer in each series, of which a share has several; a third is repeated.

    Some customers have bills of the same title.
    """
    chance = Random(seed)
    sounds = [one + vowel for one in "bdfgklmnprst" for vowel in "aeiou"]
    topics: list[dict[str, Any]] = []
    things: list[int] = []
    for number in range(series):
        name, customer = ("".join(chance.choices(sounds, k=parts)).title() for parts in (2, 3))
        said = {"title": f"{name} bill", "summary": f"For the work of {name} at {customer} as agreed"}
        several = chance.choice((2, 3, 5)) if chance.random() < recurring else 1
        for value in chance.sample(range(140), several):
            for _ in range(1 if chance.random() < 0.65 else 2):
                topics.append({**said, "fields": {"customer": customer, "value": write(value, chance)}})
                things.append(number * 1000 + value)
    return Store(topics, things)


@pytest.mark.slow
@pytest.mark.parametrize("recurring", [0.1, 0.15, 0.5])
@pytest.mark.parametrize("write", WRITERS)
def test_values_in_several_notations_keep_things_apart(write: Writer, recurring: float) -> None:
    made = bills(1, write, recurring)
    merged, right = counted_pairs(made, dedupe(made.topics).groups)
    assert right >= 0.95 * merged
    assert right > 30
