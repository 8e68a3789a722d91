"""A pair that lacks what distinguishes things of one title is asked about."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from tests.core.revise.matching.corpora import dedupe

FIRST = ["Anna", "Ben", "Carl", "Dora", "Emil", "Fay", "Gus", "Hedy", "Ian", "Jana", "Karl", "Lina"]
LAST = ["Abel", "Brandt", "Conrad", "Decker", "Engel", "Fuchs", "Graf", "Heller", "Imhof", "Jansen", "Keller", "Lorenz"]
Topic = dict[str, Any]


def person(number: int, born: int | None) -> Topic:
    chance = Random(number)
    fields = {
        "address": f"{chance.randrange(1, 99)} {chance.choice(['Mill', 'Oak', 'Park'])} Road",
        "city": chance.choice(["Linz", "Bern", "Ulm", "Jena"]),
    }
    return {
        "title": f"{FIRST[number % 12]} {LAST[number // 12 % 12]}",
        "fields": fields | ({"born": f"{born}-0{number % 9 + 1}-1{number % 7}"} if born else {}),
    }


def lists(sons: int, again: int, lacking: int) -> list[Topic]:
    """Fathers with a son of the same name, people noted twice, others, and fathers with a son without a date."""
    numbers = iter(range(144))
    father_and_son = [
        person(number, year) for _, number in zip(range(sons), numbers, strict=False) for year in (1950, 1980)
    ]
    twice = [person(number, 1960) for _, number in zip(range(again), numbers, strict=False) for _ in range(2)]
    others = [person(number, 1970) for _, number in zip(range(40), numbers, strict=False)]
    last = [person(number, year) for _, number in zip(range(lacking), numbers, strict=False) for year in (1950, None)]
    return [*father_and_son, *twice, *others, *last]


def merged(topics: list[Topic]) -> list[tuple[str, bool]]:
    """The titles of merged pairs, and whether both have a date of birth."""
    found = dedupe(topics)
    pairs = [(int(found.pairs.a[row]), int(found.pairs.b[row])) for row in np.flatnonzero(found.grouped)]
    return [(topics[a]["title"], "born" in topics[a]["fields"] and "born" in topics[b]["fields"]) for a, b in pairs]


@pytest.mark.parametrize("again", [0, 10])
def test_a_date_that_distinguishes_fathers_and_sons_may_not_be_left_open(again: int) -> None:
    found = merged(lists(8, again, 6))
    assert len(found) == again
    assert all(both for _, both in found)


def test_a_date_that_distinguishes_nobody_may_be_left_open() -> None:
    assert len(merged(lists(0, 10, 6))) == 16
