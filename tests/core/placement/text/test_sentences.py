"""Sentences: text of people, without code, addresses and remarks of software."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memstate_core.placement.text.sentences import sentences
from tests.core.placement.talk import talk, turn


def said(*texts: str | None, kinds: tuple[str, ...] = ()) -> list[str]:
    turns = talk(*(turn(at, text, kind=(kinds or ("user_message",) * len(texts))[at]) for at, text in enumerate(texts)))
    return sentences(turns.with_columns(segment=pl.lit(0)))["sentence"].to_list()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hey Dr. Smith! We use e.g. Kuzu. It costs 3.5 euros... really? Yes.",
         ["Hey Dr. Smith!", "We use e.g. Kuzu.", "It costs 3.5 euros... really?", "Yes."]),
        ("\u770b\u4e86\u4e00\u90e8\u7535\u5f71\u3002\u5f88\u597d\u770b\uff01",
         ["\u770b\u4e86\u4e00\u90e8\u7535\u5f71\u3002", "\u5f88\u597d\u770b\uff01"]),
        ("\u0645\u0631\u062d\u0628\u0627\u061f \u0646\u0639\u0645.",
         ["\u0645\u0631\u062d\u0628\u0627\u061f", "\u0646\u0639\u0645."]),
        ("Run this:\n```py\nx = 1\n```\nThen wait.", ["Run this:", "Then wait."]),
        ("It never ends:\n```py\nx = 1", ["It never ends:"]),
        ("See https://x.y/z?a=b or (https://x.y) or a@b.org for it", ["See or or for it"]),
        ("[the docs](https://x.y) are good", ["the docs are good"]),
        ("Look! [shares a photo: a cat] <Media omitted>", ["Look!"]),
        ("one\ntwo", ["one", "two"]),
        ("", []), ("!!! \u2026", []), ("\U0001f600", []), (None, []),
    ],
)  # fmt: skip
def test_a_turn_is_cut_where_a_sentence_ends(text: str | None, expected: list[str]) -> None:
    assert said(text) == expected


def test_a_tool_speaks_only_where_nobody_else_does() -> None:
    assert said("ls -la", "List the files.", kinds=("tool_call", "user_message")) == ["List the files."]
    assert said("ls -la", "total 14", kinds=("tool_call", "tool_result")) == ["ls -la", "total 14"]


@settings(max_examples=50)
@given(st.lists(st.text(max_size=60), max_size=5))
def test_nothing_is_said_that_was_not_written(texts: list[str]) -> None:
    written = {letter for text in texts for letter in text} | {" "}
    assert {letter for sentence in said(*texts) for letter in sentence} <= written


def test_a_very_long_turn_is_cut_short() -> None:
    assert sum(map(len, said("word " * 100_000))) <= 20_000
