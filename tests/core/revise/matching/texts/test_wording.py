"""The same words in another order, with other accents or a denial are another statement, which no night merges."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from memstate_core.revise.matching.texts.wording import differently_accented, in_place, negated, rearranged
from memstate_core.revise.scope_matches import alike
from tests.core.revise.matching.corpora import dedupe
from tests.core.revise.matching.families import crowd

ONE, OTHER = np.array([0, 1]), np.array([1, 0])
SWAPPED = [
    ("Ann owes Bob 20 euros", "Bob owes Ann 20 euros"),
    ("Flight from Berlin to Paris", "Flight from Paris to Berlin"),
    ("Prefers tea to coffee", "Prefers coffee to tea"),
    ("Report of 03/04/2026", "Report of 04/03/2026"),
    ("Score 2:1", "Score 1:2"),
    ("Rows 1 1 2 in the hall", "Rows 1 2 2 in the hall"),
    ("Room 3-4 on the plan", "Room 34 on the plan"),
    ("\u0438\u0437 \u0410 \u0432 \u0411", "\u0438\u0437 \u0411 \u0432 \u0410"),  # from A to B, in Russian
]
SAME_ORDER = [
    ("Smith, John", "John Smith"),
    ("Ann and Bob", "Bob and Ann"),
    ("red, green, blue", "blue, red, green"),
    ("check-in at 5", "checkin at 5"),
    ("Paid 1,200 euros", "Paid 1200 euros"),
    ("symposium on theory of computing", "symposium on the theory of the computing"),
]
DENIED = [
    ("Bob is allergic to nuts", "Bob is not allergic to nuts"),
    ("Ann likes olives", "Ann no longer likes olives"),
    ("The door is locked", "The door isn't locked"),
    ("Julia mag Oliven", "Julia mag keine Oliven"),
    (
        "\u0432 \u0447\u0430\u0435 \u0441\u0430\u0445\u0430\u0440",
        "\u0432 \u0447\u0430\u0435 \u043d\u0435 \u0441\u0430\u0445\u0430\u0440",
    ),
]
ACCENTED = [("Cumple un a\u00f1o", "Cumple un ano"), ("Sch\u00f6n angekommen", "Schon angekommen")]
REPLACED = [
    ("The server is up today", "The server is down today"),
    ("Turn left at the church", "Turn right at the church"),
]


@pytest.mark.parametrize(("one", "other"), SWAPPED)
def test_another_order_is_seen(one: str, other: str) -> None:
    assert rearranged([one, other], ONE, OTHER).tolist() == [True, True]


@pytest.mark.parametrize(("one", "other"), SAME_ORDER)
def test_inversions_lists_and_repeated_words_are_no_other_order(one: str, other: str) -> None:
    assert rearranged([one, other], ONE, OTHER).tolist() == [False, False]


def test_names_are_inverted_without_a_comma_but_the_ends_of_a_way_are_not() -> None:
    names, way = ["Heitor Villa Lobos", "Villa Lobos Heitor"], ["Graz - Vienna", "Vienna - Graz"]
    assert not rearranged(names, ONE, OTHER, names=True).any()
    assert rearranged(names, ONE, OTHER).all()
    assert rearranged(way, ONE, OTHER, names=True).all()


@pytest.mark.parametrize(("one", "other"), DENIED)
def test_a_denial_of_one_text_is_seen(one: str, other: str) -> None:
    assert negated([one, other], ONE, OTHER).all()


def test_an_initial_after_a_name_that_ends_in_n_denies_nothing() -> None:
    assert not negated(["Leslie Cranston, Timothy Hill", "L Cranston, T Hill"], ONE, OTHER).any()
    assert negated(["The door is locked", "The door isn\u2019t locked"], ONE, OTHER).all()


def test_a_number_after_no_denies_nothing() -> None:
    assert not negated(["Symphony No. 5", "Symphony 5"], ONE, OTHER).any()


@pytest.mark.parametrize(("one", "other"), ACCENTED)
def test_other_accents_are_seen(one: str, other: str) -> None:
    assert differently_accented([one, other, "Cumple"], np.array([0, 0, 0]), np.array([1, 2, 0])).tolist() == [
        True,
        False,
        False,
    ]


def test_words_in_place_of_others_are_no_misspellings_and_no_abbreviations() -> None:
    texts = ["the door is locked", "the door is closed", "the door is lokced", "the door is lock", "a door is locked"]
    found = in_place(texts, np.zeros(5, np.int64), np.arange(5))
    assert found.tolist() == [True, True, False, False, True]


def noted(text: str, place: str) -> dict[str, Any]:
    """A statement as title, as summary, or in a field."""
    return {
        "title": {"title": text},
        "both": {"title": text, "summary": f"{text}, as Aya said"},
        "summary": {"title": "What Aya said", "summary": text},
        "field": {"title": "What Aya said", "summary": "On the phone", "fields": {"note": text}},
    }[place]


@pytest.mark.parametrize("place", ["title", "both", "summary", "field"])
@pytest.mark.parametrize("others", [0, 20])
@pytest.mark.parametrize(("one", "other"), [*SWAPPED, *DENIED, *ACCENTED, *REPLACED])
def test_another_statement_of_the_same_words_is_asked_about_and_not_merged(
    one: str, other: str, others: int, place: str
) -> None:
    found = dedupe([noted(one, place), noted(other, place), *crowd(others)])
    (pair,) = np.flatnonzero((found.pairs.a == 0) & (found.pairs.b == 1))
    assert not found.grouped[pair]
    assert place == "title" or alike(found)[pair] or found.contradicts[pair] or found.scored.probability[pair] >= 0.2


def test_a_word_that_several_titles_add_keeps_each_of_them_apart() -> None:
    papers = [{"title": topic["title"], "fields": {"author": topic["summary"]}} for topic in crowd(12)]
    demos = [paper | {"title": f"{paper['title']} demo"} for paper in papers[:3]]
    assert not dedupe([*papers, *demos]).grouped.any()


def test_a_word_that_one_title_adds_alone_may_be_of_the_same_thing() -> None:
    papers = [{"title": topic["title"], "fields": {"author": topic["summary"]}} for topic in crowd(12)]
    found = dedupe([*papers, papers[0] | {"title": f"{papers[0]['title']} extended"}])
    assert found.grouped.sum() == 1


@pytest.mark.parametrize(
    ("one", "other"), [("Call mom at 7 a.m.", "Call mom at 7 p.m."), ("Budget 2 million", "Budget 2 billion")]
)
def test_topics_that_agree_in_all_but_their_only_field_are_not_merged(one: str, other: str) -> None:
    assert not dedupe([noted(one, "field"), noted(other, "field")]).grouped.any()
    assert dedupe([noted(one, "field"), noted(one.upper(), "field")]).grouped.all()
