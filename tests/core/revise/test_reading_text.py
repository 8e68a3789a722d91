"""Readings of merges as sentences."""

from __future__ import annotations

from typing import Any

import pytest

from memstate_core.revise.reading_text import reading_text


def differing(name: str, dropped: str | None = None, partner: str | None = None) -> dict[str, str | None]:
    return {"name": name, "dropped": dropped, "partner": partner}


def reading(**parts: Any) -> dict[str, Any]:
    nothing: dict[str, Any] = {
        "agree": [],
        "differ": [],
        "only": [],
        "shared": None,
        "shared_by": None,
        "shared_in_group": None,
    }
    return nothing | parts


def shared(by: int, in_group: int = 0, name: str = "title", **parts: Any) -> dict[str, Any]:
    return reading(**{"agree": [name], "shared": name, "shared_by": by, "shared_in_group": in_group} | parts)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (
            shared(0, agree=["title", "field:brand"], differ=[differing("field:price", "12", "14")]),
            "title and brand agree, price differs (12 vs 14); no other topic of the scope has the same title",
        ),
        (
            shared(3, agree=["title", "summary"]),
            "title and summary agree, nothing differs; 3 others have the same title",
        ),
        (
            reading(differ=[differing("title", "One", "Two"), differing("summary")], only=["field:owner"]),
            "nothing agrees, title (One vs Two) and summary differ, only one has owner",
        ),
        (
            shared(0, name="field:sku", only=["summary", "field:owner"]),
            "sku agrees, nothing differs, only one has summary and owner; no other topic of the scope has the same sku",
        ),
    ],
)
def test_a_reading_says_what_agrees_what_differs_and_who_shares_it(given: dict[str, Any], text: str) -> None:
    assert reading_text(given) == text


@pytest.mark.parametrize(
    ("others", "in_group", "text"),
    [
        (1, 0, "1 other has the same title"),
        (1, 1, "1 other has the same title, in this group"),
        (1234, 0, "1,234 others have the same title"),
        (3, 2, "3 others have the same title, 2 of them in this group"),
        (3, 3, "3 others have the same title, all of them in this group"),
    ],
)
def test_others_of_the_same_group_are_named(others: int, in_group: int, text: str) -> None:
    assert reading_text(shared(others, in_group)) == f"title agrees, nothing differs; {text}"


def test_many_parts_are_counted_and_long_names_cut() -> None:
    four = shared(0, agree=["title", "summary", "field:a", "field:b"])
    five = shared(0, agree=[*four["agree"], "field:c"])
    assert str(reading_text(four)).startswith("title, summary, a and b agree, ")
    assert str(reading_text(five)).startswith("title, summary, a and 2 more agree, ")
    assert f"only one has {'x' * 31}…;" in str(reading_text(shared(0, only=[f"field:{'x' * 40}"])))


def test_fields_called_like_the_texts_are_marked_as_fields() -> None:
    given = shared(
        0, agree=["title", "field:title"], differ=[differing("summary"), differing("field:summary", "a", "b")]
    )
    assert str(reading_text(given)).startswith(
        "title and field title agree, summary and field summary (a vs b) differ; "
    )


def test_values_that_are_the_same_after_the_cut_are_left_out() -> None:
    assert "note differs;" in str(reading_text(shared(0, differ=[differing("field:note", "x…", "x…")])))


@pytest.mark.parametrize("none", [None, reading(agree=None)])
def test_without_a_reading_there_is_no_text(none: dict[str, Any] | None) -> None:
    assert reading_text(none) is None
