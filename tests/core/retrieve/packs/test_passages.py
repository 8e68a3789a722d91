"""Passages: the window with the words of a question, rare ones first."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstate_core.model.terms import question_terms
from memstate_core.retrieve.packs.passages import ELLIPSIS, passage

FILL = "Every paragraph of the manual is about the boat. " * 200
LONGEST = 400


def shown(text: str, *words: str) -> str:
    return passage(text, words, LONGEST)[:LONGEST]


@pytest.mark.parametrize(
    "words",
    [("winch", "handle"), ("WINCH".lower(), "the", "is"), ("hand*",), question_terms("Where's the winch's handle?")],
)
def test_the_passage_with_the_rarest_words_is_shown(words: tuple[str, ...]) -> None:
    found = shown(FILL + "The Winch handle lies under the chart table. " + FILL, *words)
    assert "The Winch handle lies under the chart table." in found
    assert found.startswith(ELLIPSIS)


def test_a_script_without_spaces_is_searched_too() -> None:
    assert "錨は船首にある" in shown(
        "毎日の仕事です。" * 200 + "錨は船首にある。" + "毎日の仕事です。" * 200, *question_terms("錨")
    )


def test_more_words_together_are_worth_more_than_each_apart() -> None:
    text = FILL + "One winch. " + FILL + "One handle. " + FILL + "The winch has a handle. " + FILL
    assert "The winch has a handle." in shown(text, "winch", "handle")


def test_without_the_words_it_is_the_beginning() -> None:
    assert shown(FILL, "winch").startswith("Every paragraph")
    assert passage(FILL, (), LONGEST) == FILL
    assert passage("A short text with a winch.", ("winch",), LONGEST) == "A short text with a winch."


@given(text=st.text(max_size=300), words=st.lists(st.text(min_size=1, max_size=4), max_size=4))
def test_a_passage_is_the_end_of_the_text(text: str, words: list[str]) -> None:
    found = passage(text, [word.lower() for word in words], 20)
    assert found == text or (found.startswith(ELLIPSIS) and text.endswith(found.removeprefix(ELLIPSIS)))


def test_a_long_text_is_searched_in_time_that_grows_with_it() -> None:
    begun = time.process_time()
    passage("gate boat winch " * 30_000, ("gate", "boat", "winch"), LONGEST)
    assert time.process_time() - begun < 5
