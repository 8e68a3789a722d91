"""Sources that never repeat themselves are found out, and only those."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import polars as pl
import pytest

from memstate_core.revise.matching.blocking import nearest_neighbours
from memstate_core.revise.matching.comparisons import compare
from memstate_core.revise.matching.sources import DEPTHS, MAX_SHARE, Origins, learn_origins
from tests.core.revise.matching.corpora import corpus, every_pair

TWICE = 2 * DEPTHS[1]


def records(count: int = TWICE) -> list[dict[str, Any]]:
    """Things that two catalogues both list, each in its own words; the things have little in common."""
    chance = random.Random(7)
    stock = ["".join(chance.choices("abcdefghijklmnop", k=7)) for _ in range(400)]
    things = [" ".join(chance.sample(stock, 3)) for _ in range(count // 2)]
    return [
        {"id": f"{source}{number:04}", "title": f"{thing} {word}", "sources": [source]}
        for number, thing in enumerate(things)
        for source, word in (("crm", "ltd"), ("erp", "inc"))
    ]


def origins(topics: list[dict[str, Any]]) -> Origins:
    of = corpus(topics)
    pairs = nearest_neighbours(of)
    return learn_origins(of, pairs, compare(of, pairs).rankings)


def test_two_catalogues_that_never_repeat_themselves_are_taken_at_their_word() -> None:
    found = origins(records())
    assert found.distinct.tolist() == [True, True]
    assert ((found.share >= 0) & (found.share < MAX_SHARE)).all()


@pytest.mark.parametrize("seed", range(3))
def test_the_same_records_under_sources_given_at_random_are_not(seed: int) -> None:
    chance = random.Random(seed)
    found = origins([record | {"sources": [chance.choice(["crm", "erp"])]} for record in records()])
    assert not found.distinct.any()
    assert (found.share > 0.7).all()


def test_a_catalogue_that_repeats_itself_as_others_repeat_it_is_not() -> None:
    again = [record | {"id": f"{record['id']}-again", "title": record["title"].upper()} for record in records(100)]
    assert not origins(records(100) + again).distinct.any()


def diary(count: int = TWICE) -> list[dict[str, Any]]:
    """A source of its own subjects that says everything twice."""
    return [
        record | {"id": f"{record['id']}-diary", "title": record["title"][::-1], "sources": ["diary"]}
        for record in records(count)
    ]


def test_a_source_that_repeats_itself_is_found_out_beside_catalogues_that_do_not() -> None:
    assert origins(records() + diary()).distinct.tolist() == [True, False, True]


def test_sources_too_small_to_tell_are_judged_as_one() -> None:
    """Monthly exports of each catalogue, thirty topics each."""
    monthly = [
        record | {"sources": [f"{record['sources'][0]}-{number // 60}"]} for number, record in enumerate(records())
    ]
    found = origins(monthly)
    assert len(set(found.share)) == 1
    assert len(found.share) > 4


@pytest.mark.parametrize(
    "sources", [lambda _: [], lambda _: ["crm"], lambda number: [f"file-{number}"]], ids=["none", "one", "own each"]
)
def test_a_store_whose_sources_cannot_tell_is_left_open(sources: Any) -> None:
    found = origins([record | {"sources": sources(number)} for number, record in enumerate(records())])
    assert not found.distinct.any()
    assert (np.isnan(found.share) | (found.share > 1)).all()


def test_too_few_records_tell_nothing() -> None:
    found = origins(records(2 * DEPTHS[0] - 2))
    assert not found.distinct.any()
    assert np.isnan(found.share).all()


def test_scopes_are_no_sources() -> None:
    """Two users with a source each: no pair could lie over two sources, so nothing was found out."""
    own = [record | {"scope": f"user:{record['sources'][0]}"} for record in records()]
    assert not origins(own).distinct.any()


# What distinct sources say of pairs

FOUR = [{"sources": ["crm"]}, {"sources": ["crm"]}, {"sources": ["erp"]}, {}]


def test_pairs_of_one_source_are_distinct_and_pairs_over_two_compete() -> None:
    of = corpus([{"title": "Acme"} | topic for topic in FOUR])
    member = learn_origins(of, every_pair(of), np.zeros((1, 6))).member
    told = Origins(member, np.full(member.shape[1], 0.1)).standing(every_pair(of))
    assert told.same.tolist() == [True, False, False, False, False, False]
    assert told.competing.tolist() == [False, True, False, True, False, False]
    one = Origins(member, np.array([0.1, 0.9])).standing(every_pair(of))
    assert one.same.tolist() == [True, False, False, False, False, False]
    assert one.b_competes.tolist() == [False, True, False, True, False, False]
    assert not one.a_competes.any()
    open_ = Origins(member, np.full(member.shape[1], 0.9)).standing(every_pair(of))
    assert not open_.same.any()
    assert not open_.competing.any()


def test_a_topic_of_two_sources_is_of_both() -> None:
    of = corpus([{"title": "Acme", "sources": sources} for sources in (["crm", "erp"], ["erp"], ["web"])])
    assert of.sources.select(pl.len()).item() == 4
    member = learn_origins(of, every_pair(of), np.zeros((1, 3))).member
    told = Origins(member, np.full(member.shape[1], 0.1)).standing(every_pair(of))
    assert told.same.tolist() == [True, False, False]
    assert told.competing.tolist() == [False, True, True]
