"""Signs make another thing of a word or number; punctuation, and what one text leaves out, does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from memstate_core.revise.matching.comparison import differing_values, siblings
from memstate_core.revise.matching.comparison.parts import agreements, parts_of
from memstate_core.revise.matching.texts.marks import differently_marked, marks_of
from tests.core.revise.matching.corpora import corpus, dedupe
from tests.core.revise.matching.families import crowd

DIFFERENT = [
    ("Blood type A+", "Blood type A-"),
    ("Blood type AB-", "blood type ab"),
    ("Grade B+ in maths", "Grade B\u2212 in maths"),
    ("Course in C", "Course in C++"),
    ("Course in C++", "Course in C#"),
    ("Balance is 100 EUR", "Balance is -100 EUR"),
    ("Set to 20 degrees", "Set to \u221220 degrees"),
    ("+3 % this year", "-3 % this year"),
    ("Alert if temperature > 5", "Alert if temperature < 5"),
    ("Budget: $500", "Budget: \u20ac500"),
    ("Budget: 500 \u20ac", "Budget: $ 500"),
    ("\U0001f44d on the proposal", "\U0001f44e on the proposal"),
    ("Discount: 10%", "Discount: \u20ac10"),
    ("\u2192 home", "\u2190 home"),
    ("Rated \u2605\u2605\u2605\u2605", "Rated \u2605\u2605"),
]
SAME = [
    ("Blood type A+", "Blood type B-"),  # other words, not other signs
    ("Plan - part two", "Plan part two"),
    ("check-in at 5", "check in at 5"),
    ("2020-2021", "2020 2021"),
    ("Budget: $500", "Budget: 500"),
    ("temperature > 5", "temperature 5"),
    ("Party \U0001f389", "Party"),
    ("Party \U0001f389", "Party \U0001f389\U0001f389"),
    ("Discount: 10%", "Discount: 10"),
    ("Acme\u00ae drill", "Acme\u00a9 drill"),
    ("+3 % this year", "3 % this year"),
    ("-100 and 100", "100 and -100"),
    ("item-7", "item 7"),
    ("B+-trees on disk", "B+trees on disk"),
]


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_another_sign_makes_another_thing(one: str, other: str) -> None:
    texts = [one, "nothing here", other]
    assert differently_marked(marks_of(texts), np.array([0, 2, 0]), np.array([2, 0, 1])).tolist() == [True, True, False]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_punctuation_and_what_one_text_leaves_out_do_not(one: str, other: str) -> None:
    assert differently_marked(marks_of([one, other]), np.array([0, 1]), np.array([1, 0])).tolist() == [False, False]


FIELDS = [
    ("5 mg", "5 g"),
    ("5 mg", "5 ml"),
    ("5 km", "5 mi"),
    ("A+", "A-"),
    ("$500", "\u20ac500"),
    ("C#", "C++"),
    ("\U0001f44d", "\U0001f44e"),
    ("+49 151 2345678", "+49 151 2345679"),
    ("/etc/nginx/a.conf", "/etc/nginx/b.conf"),
    ("12 Old Mill Road, Flat 3, Cork, Ireland", "14 Old Mill Road, Flat 3, Cork, Ireland"),
    ("https://example.org/list?x=1", "https://example.org/list?x=2"),
    ("\u30ac\u30e9\u30b9", "\u30ab\u30e9\u30b9"),
]
ALIKE = [("5 h", "5 hrs"), ("8.10 %", "8.1%"), ("310/246-1501", "310-246-1501"), ("$ 1.29", "1.29"), ("5 kg", "5kg")]


def noted(value: str) -> dict[str, Any]:
    return {"title": "What the file says", "summary": "Noted by hand on Monday", "fields": {"value": value}}


def merged(one: dict[str, Any], other: dict[str, Any]) -> bool:
    topics = [one, other, *crowd(20)]
    found = dedupe([{"id": f"t{number:02}", **topic} for number, topic in enumerate(topics)])
    return bool(found.groups[0] == found.groups[1])


@pytest.mark.parametrize(("one", "other"), FIELDS)
def test_fields_of_another_unit_sign_or_number_keep_topics_apart(one: str, other: str) -> None:
    assert not merged(noted(one), noted(other))


@pytest.mark.parametrize(("one", "other"), [("5 mg", "5 g"), ("$500", "\u20ac500"), ("A+", "A-")])
def test_what_chance_gives_counts_them_as_contradictions(one: str, other: str) -> None:
    of, zero, last = corpus([noted(one), noted(one), noted(other)]), np.array([0, 0]), np.array([1, 2])
    seen = agreements(of, parts_of(of), zero, last).filter(pl.col("name") == "field:value")
    assert seen.select("agree", "contradict").rows() == [(True, False), (False, True)]


@pytest.mark.parametrize(("one", "other"), ALIKE)
def test_fields_written_in_another_way_do_not(one: str, other: str) -> None:
    assert merged(noted(one), noted(other))


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_titles_and_summaries_with_another_sign_keep_topics_apart(one: str, other: str) -> None:
    assert not merged({"title": one}, {"title": other})
    assert not merged({"title": "As agreed", "summary": one}, {"title": "As agreed", "summary": other})


@pytest.mark.slow
def test_without_signs_they_would_be_merged(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (siblings, differing_values):
        monkeypatch.setattr(module, "differently_marked", lambda *given: np.zeros(len(given[1]), bool))
    made = [merged({"title": one}, {"title": other}) for one, other in DIFFERENT]
    assert sum(made) >= len(DIFFERENT) - 2
