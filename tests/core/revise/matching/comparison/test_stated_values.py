"""Values of fields that titles state, and topics whose fields say something else."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from memstate_core.revise.matching.candidates.blocking import Candidates
from memstate_core.revise.matching.comparison.stated_values import stated_otherwise
from memstate_core.revise.matching.corpus import OFTEN
from tests.core.revise.matching.corpora import corpus, dedupe
from tests.core.revise.matching.families import Store
from tests.core.revise.matching.namesakes import counted_pairs

Topic = dict[str, Any]
COLOURS = ("Navy", "Purple", "Teal", "Ivory", "Coral", "Olive", "Beige", "Mint")


def said(one: Topic, other: Topic, holders: int = OFTEN, values: tuple[str, ...] = COLOURS) -> list[str]:
    """Fields of which one of two topics states another value, beside holders of each value."""
    held = [
        {"title": f"Lamp {value} {place}", "fields": {"colour": value}, "id": f"z{value}{place}"}
        for value in values
        for place in range(holders)
    ]
    of = corpus([{"id": "a", **one}, {"id": "b", **other}, *held])
    pair = Candidates(np.array([0]), np.array([1]), np.ones((1, 3), bool))
    found = stated_otherwise(of, pair, np.ones(1, bool))
    swapped = stated_otherwise(of, Candidates(pair.b, pair.a, pair.seen_by), np.ones(1, bool))
    assert found.equals(swapped)
    assert stated_otherwise(of, pair, np.zeros(1, bool)).is_empty()
    return found["name"].to_list()


PURPLE = {"title": "Crib", "fields": {"colour": "purple"}}


def test_a_title_states_another_value_of_a_field() -> None:
    assert said({"title": "Crib in Navy"}, PURPLE) == ["colour"]
    assert said({"title": "Crib in Navy", "fields": {"price": "30"}}, PURPLE) == ["colour"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"title": "Crib in Purple"}, PURPLE),
        ({"title": "Crib in Navy and Purple"}, PURPLE),
        ({"title": "Crib in Navy"}, {"title": "Crib", "fields": {"colour": "navy blue"}}),
        ({"title": "Navy crib in midnight blue"}, {"title": "Crib", "fields": {"colour": "midnight blue"}}),
        ({"title": "Crib in Navy"}, {"title": "Navy crib", "fields": {"colour": "purple"}}),
        ({"title": "Crib in Navy", "fields": {"colour": "navy"}}, PURPLE),  # compared as fields
        ({"title": "Crib in Navy"}, {"title": "Crib in Purple"}),
        ({"title": "Crib in Scarlet"}, PURPLE),
    ],
)
def test_it_states_no_other_value(one: Topic, other: Topic) -> None:
    assert said(one, other) == []


def test_a_value_of_few_topics_is_none_that_titles_state() -> None:
    assert said({"title": "Crib in Navy"}, PURPLE, holders=OFTEN - 1) == []


def test_numbers_may_count_anything() -> None:
    assert said({"title": "Crib 30"}, {"title": "Crib", "fields": {"colour": "40"}}, values=("30", "40")) == []


def cribs(count: int, seed: int, *, same: float) -> Store:
    """Offers of two shops; one writes colours into titles and the other into a field, or also has another one.

    Args:
        count: how many lines, each in several colours.
        seed: of all draws.
        same: the share of lines of which both shops have one colour.
    """
    chance, topics, things = Random(seed), list[Topic](), list[int]()
    sounds = [one + other for one in "bdfgklmnprst" for other in "aeiou"]
    kinds = ["".join(chance.choices(sounds, k=3)).title() for _ in range(12)]
    for line in range(count):
        name = " ".join("".join(chance.choices(sounds, k=3)).title() for _ in range(2)) + f" {chance.choice(kinds)}"
        one, other = chance.sample(range(len(COLOURS)), 2)
        other = one if chance.random() < same else other
        price = chance.randrange(20, 200)
        topics.append({"title": f"{name} in {COLOURS[one]}", "fields": {"price": f"${price}.99"}, "sources": ["s0"]})
        topics.append({"title": name, "fields": {"price": f"{price}.99", "colours": COLOURS[other].lower()}})
        topics[-1]["sources"] = ["s1"]
        things += [len(COLOURS) * line + one, len(COLOURS) * line + other]
    return Store(topics, things)


@pytest.mark.parametrize("seed", range(3))
def test_offers_whose_titles_state_another_colour_are_not_merged(seed: int) -> None:
    made = cribs(300, seed, same=0.9)
    merged, right = counted_pairs(made, dedupe(made.topics).groups)
    assert merged == right > 200
