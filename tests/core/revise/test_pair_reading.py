"""What two merged topics agree and differ in, and how many other topics share it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from memstate_core.model.step_frames import PAIRS
from memstate_core.revise.pair_reading import MAX_VALUE, readings
from tests.core.revise.matching.corpora import corpus

Topic = Mapping[str, Any]
LAGOON: dict[str, Any] = {"title": "Quartz lagoon", "summary": "Signed at the harbour"}


def read(topics: Sequence[Topic], *pairs: tuple[int, int], group: Sequence[int] | None = None) -> list[dict[str, Any]]:
    """The readings of pairs, the first two topics by default; `group` holds the topics that are merged."""
    chosen = np.array(pairs or [(0, 1)], np.int64)
    groups = np.arange(len(topics))
    groups[list(group or {*chosen.ravel()})] = 0
    frame = readings(corpus(topics), chosen[:, 0], chosen[:, 1], groups)
    assert frame.schema["reading"] == PAIRS["reading"]
    assert frame["pair"].to_list() == list(range(len(chosen)))
    return list(frame["reading"])


def with_fields(**fields: object) -> dict[str, Any]:
    return {"fields": fields}


def agree(one: Topic, other: Topic) -> list[str]:
    return list(read([one, other])[0]["agree"])


# What agrees and what differs


def test_parts_agree_differ_or_belong_to_one_topic_alone() -> None:
    one = LAGOON | with_fields(price=12, brand="Orla", colour="red")
    other = LAGOON | with_fields(price=14, brand="Orla", size="small") | {"summary": "Not signed yet"}
    (reading,) = read([one, other])
    assert reading["agree"] == ["title", "field:brand"]
    assert reading["differ"] == [
        {"name": "summary", "a": None, "b": None},
        {"name": "field:price", "a": "12", "b": "14"},
    ]
    assert reading["only"] == ["field:colour", "field:size"]


def test_each_pair_has_its_own_reading() -> None:
    topics = [{"title": "A"}, {"title": "A"}, {"title": "B"}]
    first, second = read(topics, (0, 1), (1, 2))
    assert (first["agree"], first["differ"]) == (["title"], [])
    assert (second["agree"], second["differ"]) == ([], [{"name": "title", "a": "A", "b": "B"}])


def test_a_part_that_neither_has_is_left_out() -> None:
    (reading,) = read([{"title": "Weekly report"}, {"title": "Weekly report", "summary": " "}])
    assert (reading["agree"], reading["differ"], reading["only"]) == (["title"], [], [])


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Café  Orla!", "cafe orla", True),
        ("Orla's café", "Orla cafe", False),
        ("Introduction to C++", "Introduction to C#", False),
        ("Grade A+", "Grade A", False),
        ("Orla cafe", "Cafe Orla", False),
        ("🎉", "🔥", False),
        ("!!", "!!", True),
        ("!!", "??", False),
    ],
)
def test_titles_and_summaries_agree_in_their_words(one: str, other: str, same: bool) -> None:
    texts = [{"title": text, "summary": text} for text in (one, other)]
    assert agree(*texts) == ["title", "summary"] * same


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Orla  Byrne", "orla byrne", True),
        ("O+", "O-", False),
        ("A-", "A", False),
        ("Byrne, Orla", "Orla Byrne", False),
        ("12.0", "12", True),
        ("$1.29", "$ 1.29", True),
        ("12", "14", False),
        ("2026-04-01", "1 Apr 2026", True),
        ("2026-04-01", "2026-05-01", False),
        ("4", "four", False),
        ("", "", False),
    ],
)
def test_fields_agree_in_their_day_number_or_text(one: str, other: str, same: bool) -> None:
    topics = [{"title": "Meal"} | with_fields(rating=value) for value in (one, other)]
    assert agree(*topics) == ["title", *["field:rating"] * same]


def test_long_values_are_cut_and_folded_to_one_line() -> None:
    (reading,) = read([with_fields(note="line\n" * 20), with_fields(note="x" * MAX_VALUE)])
    (note,) = reading["differ"]
    assert note == {"name": "field:note", "a": "line line line line line line l…", "b": "x" * MAX_VALUE}


# How many others share it


def test_the_others_with_the_same_title_are_counted() -> None:
    topics = [{"title": "Weekly report"}] * 4 + [{"title": "Weekly report 2"}]
    (reading,) = read(topics)
    assert (reading["shared"], reading["shared_by"], reading["shared_in_group"]) == ("title", 2, 0)


def test_the_rarest_of_what_agrees_is_named_the_title_if_nothing_is_rarer() -> None:
    topics = [LAGOON | with_fields(code="k7", price=5)] * 2 + [LAGOON, {"title": "Other"} | with_fields(code="k9")]
    assert [read(topics)[0][name] for name in ("shared", "shared_by")] == ["field:code", 0]
    assert [read(topics[:2])[0][name] for name in ("shared", "shared_by")] == ["title", 0]


def test_a_value_is_counted_among_topics_that_have_it_in_the_same_field() -> None:
    topics = [with_fields(owner="Aya")] * 2 + [with_fields(owner="aya"), with_fields(guest="Aya"), {"title": "Aya"}]
    assert read(topics)[0]["shared_by"] == 1


def test_of_the_others_those_of_the_same_group_are_counted_apart() -> None:
    topics = [LAGOON] * 5 + [{"title": "Other"}]
    pairs = [(0, 1), (0, 2), (1, 2)]
    for reading in read(topics, *pairs, group=[0, 1, 2, 5]):
        assert (reading["shared_by"], reading["shared_in_group"]) == (3, 1)


def test_topics_of_the_same_group_do_not_make_a_part_less_rare() -> None:
    topics = [LAGOON | with_fields(year=1994)] * 2 + [LAGOON] * 3 + [{"title": "Other"} | with_fields(year=1994)]
    (reading,) = read(topics, group=[0, 1, 2, 3, 4])
    assert [reading[name] for name in ("shared", "shared_by", "shared_in_group")] == ["title", 3, 3]


def test_where_nothing_agrees_nothing_is_shared() -> None:
    (reading,) = read([{"title": "One"}, {"title": "Two"}, {"title": "Two"}])
    assert (reading["agree"], reading["shared"], reading["shared_by"]) == ([], None, None)


def test_without_merged_pairs_there_are_no_readings() -> None:
    none = np.empty(0, np.int64)
    assert readings(corpus([LAGOON]), none, none, np.zeros(1, np.int64)).is_empty()
