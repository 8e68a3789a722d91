"""Agreement levels of pairs of topics."""

from __future__ import annotations

from dataclasses import fields as fields_of
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from memstate_core.revise.matching.candidates.blocking import Candidates, joined
from memstate_core.revise.matching.comparison.comparisons import (
    FIELD_EDGES,
    LEVELS,
    TEXT,
    Compared,
    compare,
    ranked,
    together,
    unranked,
)
from memstate_core.revise.matching.corpus import Corpus
from memstate_core.revise.matching.fit.priors import levels_of
from tests.core.revise.matching.corpora import corpus, every_pair
from tests.core.strategies import EPOCH

OTHERS = [{"title": f"Word{number} thing{number}", "id": f"z{number:03}"} for number in range(40)]
ALIKE = len(FIELD_EDGES)
SOLD = "the contract was sold in the northern office"

Levels = dict[str, int]


def levels(one: dict[str, Any], other: dict[str, Any]) -> Levels:
    """The levels of a pair among unrelated topics, by comparison."""
    of = corpus([{"id": "a", **one}, {"id": "b", **other}, *OTHERS])
    compared = compare(of, Candidates(np.array([0]), np.array([1]), np.ones((1, 3), bool)))
    return {compared.names[name]: level for _, name, level in single(compared)}


def single(compared: Compared) -> list[tuple[int, int, int]]:
    """The pair, comparison and level of each single comparison."""
    return list(zip(*(each.tolist() for each in compared.single(np.ones(len(compared), bool))), strict=True))


def titles(one: str | None, other: str | None) -> Levels:
    return levels({"title": one}, {"title": other})


def field(one: Any, other: Any) -> int | None:
    sides = [{"fields": {"year": value}} for value in (one, other)]
    return levels(*sides).get("field:year")


# Titles


def test_titles_are_more_alike_the_fewer_letters_and_words_differ() -> None:
    others = ["Acme renewal contract", "Acme renewals contract", "Acme renewal", "Acme lease", "Plan B", None]
    found = [titles("Acme renewal contract", other)["title"] for other in others]
    assert found == sorted(found, reverse=True)
    assert (found[0], found[-1]) == (9, 0)
    assert len(set(found)) >= 4


@pytest.mark.parametrize(
    ("one", "other", "level"),
    [
        ("Alpha 1.2", "Alpha 1.3", 0),
        ("Unit 7", "Unit 12", 0),
        ("Unit 7 rev 3", "Unit 7 rev 4", 1),
        ("Unit 7 rev 3", "Unit 7", 3),
        ("Rocky II", "Rocky III", 0),
        ("TV KDL-40V4100 2008", "TV KDL40V4100 2008", 5),
        ("Room 12.25 2008", "Room 12.25 2008", 4),
        ("Unit 7", "Unit seven", None),
        ("Acme", "Acme", None),
    ],
)
def test_numbers_are_distinguished(one: str, other: str, level: int | None) -> None:
    assert titles(one, other).get("numbers") == level
    assert titles(other, one).get("numbers") == level


def test_rarity_counts_where_titles_are_near_and_rises_with_what_only_the_two_share() -> None:
    assert "rarity" not in titles("Acme renewal", "Plan B")
    common = [{"title": "Plan", "id": f"y{number:03}"} for number in range(40)]
    of = corpus([*common, {"title": "Quartz lagoon", "id": "a"}, {"title": "Quartz lagoon", "id": "b"}])
    compared = compare(of, Candidates(np.array([0, 2]), np.array([1, 3]), np.ones((2, 3), bool)))
    rare, plain = compared.surprise
    assert rare > 0 > plain
    assert compared.same_title.tolist() == [True, True]


@pytest.mark.parametrize(
    ("other", "same"),
    [("acme-RENEWAL!", True), ("Renewal Acme", False), ("Acme renewals", False), ("Acme 1 2", False)],
)
def test_titles_are_the_same_when_their_words_are_in_their_order(other: str, same: bool) -> None:
    of = corpus([{"title": "Acme renewal"}, {"title": other}])
    assert compare(of, every_pair(of)).same_title.tolist() == [same]


# Summaries, fields, time


@pytest.mark.parametrize(
    ("one", "other", "level"),
    [
        ("1999", 1999.0, ALIKE),
        (1999, 1999, ALIKE),
        ("Aya", "Aya", ALIKE),
        ("Aya", "Ben", 0),
        (True, True, ALIKE),
        (["a", "b"], ["a", "b"], ALIKE),
        (100, 200, 0),
        (0, 0.0, ALIKE),
        (-5, 5, 0),
        ("", "", ALIKE),
    ],
)
def test_equal_values_agree_however_they_are_written(one: Any, other: Any, level: int) -> None:
    assert field(one, other) == field(other, one) == level


def test_near_numbers_and_spellings_lie_between() -> None:
    assert 0 < field(100, 101) < ALIKE
    assert field(100, 110) < field(100, 101)
    assert 0 < field("Northern office", "Northern offices") < ALIKE


def test_measured_numbers_are_compared_by_steps_of_their_distance() -> None:
    """Coordinates of one place are nearer than those of its neighbours, though both are near."""
    others = ["40.000", "40.030", "40.150", "40.700", "42.000", "45.000", "60.000"]
    assert [field("40.000", other) for other in others] == [ALIKE, 5, 4, 3, 2, 1, 0]
    assert field("40.00", "40.03") == field("40.000", "40.03") == field(40, 41) == 4  # amounts


@pytest.mark.parametrize("kind", ["date", "datetime"])
def test_dates_are_compared_by_days(kind: str) -> None:
    def apart(one: str, other: str) -> int:
        sides = [{"fields": {"due": value}, "types": {"due": kind}} for value in (one, other)]
        return levels(*sides)["field:due"]

    assert apart("2026-03-01", "2026-03-01") == ALIKE
    assert apart("2026-02-28", "2026-03-01") > apart("2026-02-28", "2026-03-05") > 0
    assert apart("2026-03-01", "2027-03-01") == apart("2026-03-01T09:00:00Z", "2025-03-01T09:00:00Z") == 0
    assert apart("next week", "next week") == ALIKE


def test_a_date_in_a_text_field_is_compared_by_days() -> None:
    assert field("2026-03-01", "2027-03-01") == field("18-May-15", "June 11, 2013") == 0
    assert field("18-May-15", "May 18 , 2015") == field("2015-05-18", "18 May 2015") == ALIKE
    assert field("30 February 2015", "30 February 2016") > 0


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [("8.10 %", "8.1%", True), ("$ 1.29", "1.29", True), ("6:30", "4:02", False), ("1:02:03", "62:03", True)],
)
def test_numbers_with_units_and_durations_are_compared_as_numbers(one: str, other: str, same: bool) -> None:
    assert (field(one, other) == ALIKE) is same


@pytest.mark.parametrize("odd", ["nan", "inf", "Infinity", "-inf", "NaN"])
def test_words_that_spell_no_finite_number_are_words(odd: str) -> None:
    assert field(odd, 7) == field(7, odd) == 0
    assert field(odd, "Aya") == 0
    assert field(odd, odd) == ALIKE


def test_a_field_that_one_side_lacks_is_not_compared() -> None:
    shown = levels({"fields": {"year": 1999, "owner": "Aya"}}, {"fields": {"owner": "Aya"}})
    assert {name: level for name, level in shown.items() if name.startswith("field:")} == {"field:owner": ALIKE}


def test_a_summary_counts_for_what_it_adds_to_title_and_fields() -> None:
    repeated = {"title": "Acme renewal", "summary": "Acme renewal, owner Aya", "fields": {"owner": "Aya"}}
    assert "summary" not in levels(repeated, repeated)
    added = repeated | {"summary": f"Acme renewal: {SOLD}"}
    assert levels(added, added)["summary"] == 8
    assert levels(added, repeated | {"summary": "we met three engineers for lunch"})["summary"] == 0


def test_meaning_is_the_cosine_of_the_vectors() -> None:
    near, far = {"vector": [1.0]}, {"vector": [0.0, 1.0]}
    assert (levels(near, near)["meaning"], levels(near, far)["meaning"]) == (8, 0)


@pytest.mark.parametrize(("apart", "level"), [(0, 0), (2 / 24, 1), (2, 2), (20, 3), (100, 4), (400, 5)])
def test_time_is_how_far_apart_the_first_words_were(apart: float, level: int) -> None:
    later = {"created_at": EPOCH + timedelta(days=apart)}
    assert levels({"created_at": EPOCH}, later)["time"] == levels(later, {"created_at": EPOCH})["time"] == level
    assert "time" not in levels(later, {})


# Bookkeeping

STORE = [
    {"title": "Acme renewal 7", "summary": SOLD, "fields": {"owner": "Aya", "year": 1999}},
    {"title": "Acme renewal", "summary": SOLD, "fields": {"owner": "Ben"}},
    {"title": "Acme renewals 8", "fields": {"year": "1999"}},
    {"title": "Plan B", "summary": "something else is written here"},
    {"title": None},
]


def part(of: Candidates, chosen: slice) -> Candidates:
    return Candidates(of.a[chosen], of.b[chosen], of.seen_by[chosen])


@pytest.mark.parametrize("cut", [0, 3, 10])
def test_two_sets_compared_together_are_as_all_compared_at_once(cut: int) -> None:
    of = corpus(STORE)
    one, other = part(every_pair(of), slice(cut)), part(every_pair(of), slice(cut, None))
    parts, whole = together([compare(of, one), compare(of, other)]), compare(of, joined(one, other))
    assert single(parts) == single(whole)
    for name in {field.name for field in fields_of(Compared)} - {"made"}:
        np.testing.assert_array_equal(getattr(parts, name), getattr(whole, name))


def test_levels_stay_within_what_the_model_has_room_for() -> None:
    of = corpus(STORE)
    compared = compare(of, every_pair(of))
    assert {*TEXT} <= {*compared.names}
    assert {"field:owner", "field:year"} <= {*compared.names}
    assert max(levels_of(name) for name in compared.names) <= LEVELS
    for _, comparison, level in single(compared):
        assert 0 <= level < levels_of(compared.names[comparison])


def ranks(of: Corpus, eligible: list[bool]) -> dict[int, int]:
    pairs = every_pair(of)
    plain = compare(of, pairs)
    compared = ranked(plain, pairs, np.array(eligible), len(of))
    assert {*single(plain)} < {*single(compared)}
    assert single(unranked(compared)) == single(plain)
    return dict(zip(compared.of("rank").pair.tolist(), compared.of("rank").level.tolist(), strict=True))


def test_rank_says_whether_each_is_the_others_nearest() -> None:
    """0 and 1 are each other's nearest; 2's nearest is among them, not the reverse."""
    of = corpus([{"title": "Acme renewal 7"}, {"title": "Acme renewal 7"}, {"title": "Acme renewal"}])
    assert ranks(of, [True] * 3) == {0: 2, 1: 1, 2: 1}


def test_pairs_that_cannot_be_matches_are_ranked_among_themselves_and_do_not_stand_in_the_way() -> None:
    of = corpus([{"title": "Acme renewal 7"}, {"title": "Acme renewal 7"}, {"title": "Acme renewal"}])
    assert ranks(of, [False, True, False]) == {0: 2, 1: 2, 2: 1}
