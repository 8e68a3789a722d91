"""Numbers that several sources measured agree though their last digits differ, if few others are as close."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import polars as pl
import pytest

from memstate_core.revise.matching.comparison.parts import NEAR, agreements, parts_of
from tests.core.revise.matching.corpora import corpus, dedupe
from tests.core.revise.matching.families import Store
from tests.core.revise.matching.namesakes import counted_pairs

SOURCES, PLACES = ("atlas", "census", "photos", "wiki"), 300


def gazetteers(seed: int, shared: float = 0.2, spread: float = 60.0, start: float = 20.0) -> Store:
    """Places of four sources, each with coordinates of its own; a share of the places has the name of another one."""
    chance = Random(seed)
    sounds = [one + other for one in "bdfgklmnprst" for other in "aeiou"]
    names: list[str] = []
    topics: list[dict[str, Any]] = []
    things: list[int] = []
    for place in range(PLACES):
        known = names and chance.random() < shared
        names.append(chance.choice(names) if known else "".join(chance.choices(sounds, k=3)).title())
        latitude, longitude = (start + chance.uniform(0, spread) for _ in range(2))
        for source in SOURCES:
            if chance.random() < 0.8:
                fields = {
                    "latitude": f"{latitude + chance.gauss(0, 0.005):.4f}",
                    "longitude": f"{longitude + chance.gauss(0, 0.005):.4f}",
                }
                topics.append({"title": names[-1], "fields": fields, "sources": [source]})
                things.append(place)
    return Store(topics, things)


def keys(values: list[tuple[str, str]]) -> list[str]:
    """The keys of numbers of topics with the given titles."""
    of = corpus([{"title": title, "fields": {"size": value}} for title, value in values])
    return parts_of(of).sort("row")["key"].to_list()


def true_pairs(made: Store) -> int:
    sizes = np.bincount(made.things)
    return int((sizes * (sizes - 1) // 2).sum())


@pytest.mark.parametrize("seed", range(3))
def test_places_of_several_gazetteers_are_merged(seed: int) -> None:
    made = gazetteers(seed)
    merged, right = counted_pairs(made, dedupe(named(made)).groups)
    assert right >= 0.85 * true_pairs(made)
    assert right >= 0.99 * merged


@pytest.mark.parametrize("seed", range(3))
def test_places_about_the_equator_are_merged_as_others_are(seed: int) -> None:
    made = gazetteers(seed, spread=10.0, start=-5.0)
    merged, right = counted_pairs(made, dedupe(named(made)).groups)
    assert right >= 0.85 * true_pairs(made)
    assert right >= 0.99 * merged


def named(made: Store) -> list[dict[str, Any]]:
    return [{"id": f"t{number:05}", **topic} for number, topic in enumerate(made.topics)]


def test_places_of_one_town_with_one_name_stay_apart() -> None:
    """Coordinates there are all as close as those of one place."""
    made = gazetteers(1, shared=0.5, spread=0.05)
    merged, right = counted_pairs(made, dedupe(named(made)).groups)
    assert right >= 0.95 * merged


FAR = [(f"Mast {place}", f"{2 + place * 1.7:.4f}") for place in range(20)]


def test_measured_numbers_have_a_range_as_their_key() -> None:
    found = keys([*FAR, ("Mast 0", "2.0011")])
    assert found[0] == found[-1]
    assert len(set(found)) == len(FAR)
    assert all(key.startswith(NEAR) for key in found)


def test_signs_make_other_ranges_and_nothing_is_its_own() -> None:
    one, *_, other, nothing = keys([*FAR, ("North", "-2.0000"), ("East", "0.0000")])
    assert (one.removeprefix(f"{NEAR} 1.0 "), nothing) == (other.removeprefix(f"{NEAR} -1.0 "), "number 0.0")


@pytest.mark.parametrize(
    "values",
    [
        [(title, value[:-2]) for title, value in FAR],  # two decimals: amounts
        [(title, f"52.{51 + place % 3}11") for place, (title, _) in enumerate(FAR)],  # all of them close
        [*FAR, ("Mast 0", FAR[0][1])],  # copied
    ],
)
def test_numbers_are_their_own_keys_where_ranges_say_nothing(values: list[tuple[str, str]]) -> None:
    assert {key.split()[0] for key in keys(values)} == {"number"}


@pytest.mark.parametrize(
    ("one", "other", "agree", "contradict"),
    [
        ("39.8012", "39.9011", True, False),
        ("40.0400", "40.0500", True, False),  # in two ranges
        ("39.8012", "40.2011", False, True),
        ("39.8012", "39.8", False, False),
    ],
)
def test_close_numbers_agree(one: str, other: str, agree: bool, contradict: bool) -> None:
    of = corpus([{"title": title, "fields": {"size": value}} for title, value in [*FAR, ("A", one), ("A", other)]])
    ends = (np.array([at], np.int64) for at in (len(FAR), len(FAR) + 1))
    seen = agreements(of, parts_of(of), *ends)
    assert seen.select("agree", "contradict").rows() == [(agree, contradict)]
    assert seen.schema["agree"] == pl.Boolean


SOUTH = [(f"Mast {place} south", f"{-2 - place * 1.7:.4f}") for place in range(20)]


@pytest.mark.parametrize(
    ("south", "one", "other", "agree"),
    [
        (SOUTH, "0.0112", "-0.0204", True),
        (SOUTH, "0.0000", "-0.0204", True),
        (SOUTH, "0.0112", "-0.0604", False),  # half a percent of the lower quartile, 10.5, is 0.05
        (SOUTH, "20.0112", "20.0704", True),  # farther from zero than that, distances are relative to the numbers
        (SOUTH, "20.0112", "20.1704", False),
        (SOUTH, "0.0", "-0.0204", True),  # rounded
        (SOUTH, "0.011", "-0.02", False),  # an amount that rounding does not explain
        ([], "0.0112", "-0.0204", False),  # one negative number of many may be an error
        ([], "0.0112", "0.0204", False),
    ],
)
def test_numbers_about_zero_are_as_close_as_others_of_a_field_of_both_signs(
    south: list[tuple[str, str]], one: str, other: str, agree: bool
) -> None:
    others = [*FAR, *south]
    of = corpus([{"title": title, "fields": {"size": value}} for title, value in [*others, ("A", one), ("A", other)]])
    ends = (np.array([at], np.int64) for at in (len(others), len(others) + 1))
    seen = agreements(of, parts_of(of), *ends)
    assert seen["contradict"].to_list() == [not agree]


def test_ranges_about_zero_are_as_wide_as_what_may_be_one_number() -> None:
    one, nothing, below, far = keys(
        [*FAR, *SOUTH, ("A", "0.0112"), ("B", "0.0000"), ("C", "-0.0204"), ("D", "0.2000")]
    )[-4:]
    assert one == nothing
    assert len({one, below, far}) == 3
    assert all(key.startswith(NEAR) for key in (one, below))


def test_texts_that_do_not_contradict_each_other_do_not_agree_for_that() -> None:
    """Keys of texts begin with their first word, by the alphabet."""
    texts = ("About long walks by the sea near Porto", "About dinner with Mara, who likes soup")
    of = corpus([{"title": "A", "fields": {"size": text}} for text in texts])
    seen = agreements(of, parts_of(of), np.array([0], np.int64), np.array([1], np.int64))
    assert seen.select("agree", "contradict").rows() == [(False, False)]
