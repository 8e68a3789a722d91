"""What two duplicate-free sources agree on may identify a thing, so that its other fields may differ in words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.sparse import csr_matrix

from memstate_core.model.frames import empty
from memstate_core.revise.matching.candidates.blocking import Candidates
from memstate_core.revise.matching.comparison.comparisons import compare
from memstate_core.revise.matching.comparison.identifiers import (
    DIFFERING,
    MAX_HOLDERS,
    MIN_SHARED,
    in_common,
    shared_values,
)
from memstate_core.revise.matching.comparison.siblings import signs
from memstate_core.revise.matching.comparison.sources import Origins
from memstate_core.revise.matching.comparison.title_formats import TitleFormats
from memstate_core.revise.matching.deduplication import Deduplicated
from memstate_core.revise.matching.earlier_merges import MERGED_FIELDS, EarlierMerges
from tests.core.revise.matching.corpora import corpus, dedupe

NO_FORMATS = pl.DataFrame(schema={"source": pl.Int64, "name": pl.String})
PLACES, EVERY = 200, 20
"""Places that both guides list, and of which every so-many-th contradicts itself."""
CITIES = ("Aveiro", "Braga", "Coimbra", "Evora", "Faro", "Guarda", "Leiria", "Lisboa", "Porto", "Setubal")
Topic = dict[str, Any]
Change = Callable[[Topic, int], Any]


def guides(change: Change = lambda *_: None, places: int = PLACES, seed: int = 1) -> list[Topic]:
    """Places of two guides with a telephone number each; `change` gets those of the second one, with their numbers."""
    chance = Random(seed)
    sounds = ["".join(chance.choice("bdfgklmnprst") + chance.choice("aeiou") for _ in range(3)) for _ in range(400)]
    topics: list[Topic] = []
    for number in range(places):
        title, about = (" ".join(chance.sample(sounds, size)) for size in (3, 6))
        fields = {"phone": f"2{chance.randrange(10**8):08}/{number:04}", "city": chance.choice(CITIES)}
        place = {"title": title, "summary": about}
        topics += [{**place, "fields": dict(fields), "sources": [guide]} for guide in ("north", "south")]
        change(topics[-1], number)
    return [{"id": f"t{place:05}", "thing": place // 2} | topic for place, topic in enumerate(topics)]


def moved(topic: Topic, number: int) -> None:
    """Every so-many-th place is in another city."""
    if number % EVERY == 0:
        others = [city for city in CITIES if city != topic["fields"]["city"]]
        topic["fields"]["city"] = others[number % len(others)]


def also(*changes: Change) -> Change:
    return lambda topic, number: [change(topic, number) for change in changes]


def without_phone(topic: Topic, _: int) -> None:
    del topic["fields"]["phone"]


def stated(name: str, one: Any, other: Any) -> Callable[[list[Topic]], list[Topic]]:
    """Places with another field, which differs in every so-many-th one."""

    def state(topics: list[Topic]) -> list[Topic]:
        for place, topic in enumerate(topics):
            differs = place % 2 and place // 2 % EVERY == 0
            topic["fields"][name] = other if differs else one
        return topics

    return state


def contradicted(topics: list[Topic], found: Deduplicated | None = None) -> tuple[int, int]:
    """How many places that contradict themselves are merged, and how many are not."""
    groups = (found or dedupe(topics)).groups
    places = dict(zip(sorted(str(topic["id"]) for topic in topics), groups, strict=True))
    by_thing: dict[int, list[Topic]] = {}
    for topic in topics:
        by_thing.setdefault(topic["thing"], []).append(topic)
    differing = [
        places[one["id"]] == places[other["id"]]
        for one, other in (pair for pair in by_thing.values() if len(pair) == 2)
        if any(one["fields"][name] != other["fields"].get(name, value) for name, value in one["fields"].items())
    ]
    return sum(differing), len(differing) - sum(differing)


EXPECTED = PLACES // EVERY


@pytest.mark.parametrize("seed", range(3))
def test_places_with_one_telephone_number_are_merged_though_their_cities_differ(seed: int) -> None:
    assert contradicted(guides(moved, seed=seed)) == (EXPECTED, 0)


def test_they_are_not_without_the_telephone_number() -> None:
    assert contradicted(guides(also(moved, without_phone))) == (0, EXPECTED)


@pytest.mark.parametrize(
    ("name", "one", "other"),
    [
        ("opened", "2024-05-01", "2025-05-01"),
        ("edition", 2, 3),
        ("pack", "20 tablets", "50 tablets"),
        ("sprint", "sprint 3", "sprint 18"),
        ("weight", "5 kg", "5 lb"),
        ("grade", "A+", "A-"),
        ("invoice", "INV-20240042", "INV-20240117"),
    ],
)
def test_other_dates_numbers_units_and_signs_keep_them_apart(name: str, one: Any, other: Any) -> None:
    assert contradicted(stated(name, one, other)(guides())) == (0, EXPECTED)


def test_other_titles_keep_members_of_one_household_apart() -> None:
    def renamed(topic: Topic, number: int) -> None:
        if number % EVERY == 0:
            topic["title"] = " ".join([*topic["title"].split()[:2], "quumbaxi"])
            topic["fields"]["city"] = "Viseu"

    assert contradicted(guides(renamed)) == (0, EXPECTED)


@pytest.mark.slow
@pytest.mark.parametrize(("places", "described"), [(PLACES, False), (6 * PLACES, True)])
def test_equal_prices_of_different_things_identify_nothing(places: int, described: bool) -> None:
    """Each price is that of one thing in each shop, but not of the same.

    With descriptions that many things share, the pairs with the same price are no candidates.
    """
    topics = guides(also(moved, without_phone), places)
    others = [own for own in range(places) if own % EVERY]
    prices = dict(zip(others, others[80:] + others[:80], strict=True))
    for place, topic in enumerate(topics):
        own = place // 2
        topic["fields"]["price"] = 100 + (prices.get(own, own) if place % 2 else own)
        if described:
            topic["summary"] = " ".join(f"{word}{own // 40}" for word in ("garden", "harbour", "music", "fish") * 10)
    assert contradicted(topics) == (places - places // EVERY, places // EVERY)


def test_a_number_that_a_source_gives_to_several_things_of_one_title_identifies_nothing() -> None:
    """The number of a customer: a source that lists two deals with many customers shows that deals share it."""

    def dated(topic: Topic, _: int) -> None:
        topic["fields"]["signed"] = "2024-05-01"

    topics = guides(also(moved, dated))
    for topic in topics[::2]:
        topic["fields"]["signed"] = "2024-05-01"
    assert contradicted(topics) == (EXPECTED, 0)
    again = [
        topic | {"id": f"{topic['id']}-again", "fields": topic["fields"] | {"signed": "2025-05-01"}, "thing": -place}
        for place, topic in enumerate(topics, 1)
        if topic["thing"] % EVERY == 1
    ]
    assert contradicted([*topics, *again]) == (0, EXPECTED)


def test_few_shared_values_show_nothing() -> None:
    """However few repeats are to be expected, as between a short list and a long one."""
    short = guides(moved, places=2 * MIN_SHARED)
    for topic in short[2 * MIN_SHARED - 2 :]:
        del topic["fields"]["phone"]
    long = guides(seed=2, places=2 * PLACES)[1::2]
    others = [topic | {"id": f"own-{place}", "thing": -1 - place} for place, topic in enumerate(long)]
    assert contradicted([*short, *others]) == (0, 2 * MIN_SHARED // EVERY)


@pytest.mark.parametrize(("holders", "shared"), [(MAX_HOLDERS, True), (MAX_HOLDERS + 1, False)])
def test_what_very_many_sources_state_is_no_identifier(holders: int, shared: bool) -> None:
    """Such as a city, where each topic has a source of its own, as pages of the web do."""
    of = corpus(
        [
            {"title": f"Yard {place}", "fields": {"phone": f"2{place:08}"}, "sources": [f"page-{place}-{page}"]}
            for place in range(MIN_SHARED)
            for page in range(holders)
        ]
    )
    a, b = np.triu_indices(len(of), 1)
    one = a // holders == b // holders
    pairs = Candidates(a[one], b[one], np.zeros((int(one.sum()), 0), bool))
    origins = Origins(csr_matrix(np.eye(len(of))), np.full(len(of), 0.1))
    relations = origins.relations(pairs)
    found = signs(of, pairs, compare(of, pairs).shared, TitleFormats(np.arange(len(of)), NO_FORMATS), relations)
    common = in_common(shared_values(of, origins), pairs, found, relations, empty(MERGED_FIELDS))
    assert common.identifier.all() == shared


def test_pairs_of_two_sources_that_repeat_themselves_share_no_identifier() -> None:
    topics = [topic | {"sources": [("a", "b", "clean")[place % 3]]} for place, topic in enumerate(guides())]
    of = corpus(topics)
    pairs = Candidates(np.arange(0, len(of), 2), np.arange(1, len(of), 2), np.zeros((PLACES, 0), bool))
    sources = np.arange(len(of)) % 3
    member = csr_matrix((np.ones(len(of)), (np.arange(len(of)), sources)), shape=(len(of), 3))
    origins = Origins(member, np.array([np.nan, 1.0, 0.1]))
    relations = origins.relations(pairs)
    found = signs(of, pairs, compare(of, pairs).shared, TitleFormats(sources, NO_FORMATS), relations)
    common = in_common(shared_values(of, origins), pairs, found, relations, empty(MERGED_FIELDS))
    assert common.identifier.tolist() == [2 in (sources[a], sources[b]) for a, b in zip(pairs.a, pairs.b, strict=True)]


def test_a_value_that_a_third_topic_has_is_no_identifier_of_two() -> None:
    topics = guides(moved)
    third = {"id": "third", "thing": -1, "title": "Elsewhere", "sources": ["north"], "fields": topics[0]["fields"]}
    assert contradicted([*topics, third]) == (EXPECTED - 1, 1)


@pytest.mark.parametrize(("share", "merged"), [(0.5 * DIFFERING, EXPECTED), (2 * DIFFERING, 0)])
def test_values_that_things_with_other_titles_share_identify_nothing(share: float, merged: int) -> None:
    def renamed(topic: Topic, number: int) -> None:
        if number % EVERY and number % round(1 / share) == 1:
            topic["title"], topic["summary"] = (f"{word} of quumbaxi {number}" for word in ("Yard", "Tale"))

    assert contradicted(guides(also(moved, renamed)))[0] == merged


def test_merges_of_earlier_nights_count_among_the_shared_values() -> None:
    """What is left is too little to show that the number identifies places."""
    first = guides(moved)
    merged = [{**one, "sources": ["north", "south"]} for one in first[::2] if one["thing"] % EVERY]
    second = [*merged, *(topic for topic in first if topic["thing"] % EVERY == 0)]
    absorbed = np.array([len(topic["sources"]) - 1 for topic in sorted(second, key=lambda topic: str(topic["id"]))])
    rows = [(merge, name, True, True, True, False) for merge in range(len(merged)) for name in ("phone", "city")]
    nothing = replace(EarlierMerges.none(len(second)), absorbed=absorbed, by_runs=absorbed, links=len(merged))
    known = replace(nothing, fields=pl.DataFrame(rows, MERGED_FIELDS, orient="row"))
    for earlier, expected in ((nothing, (0, EXPECTED)), (known, (EXPECTED, 0))):
        assert contradicted(second, dedupe(second, earlier=earlier)) == expected
