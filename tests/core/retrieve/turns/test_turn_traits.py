"""The form of a turn: how long it is, and which share of its sentences ask, in several scripts."""

from __future__ import annotations

import math

import polars as pl
import pytest

from memstate_core.retrieve.turns.turn_traits import asking_shares, says_changed, text_lengths


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("I sold the boat.", 0),
        ("Did you sell the boat?", 1),
        ("I sold the boat. And you?", 0.5),
        ("Really?! You sold it", 0.5),
        ("Version 3.5 is out, see http://example.com/?q=1", 0),
        ('He asked "why?" and left.', 0.5),
        ("你好吗？我很好。", 0.5),  # noqa: RUF001
        ("هل بعت القارب؟", 1),
        ("...", 0),
        ("", 0),
        (None, 0),
    ],
)
def test_sentences_that_ask_are_counted(text: str | None, share: float) -> None:
    assert asking_shares(pl.Series([text, "Other?"], dtype=pl.String)).tolist() == [share, 1]


def test_a_length_is_logarithmic_and_unknown_without_text() -> None:
    known, *unknown = text_lengths(pl.Series([" boats ", "  ", None], dtype=pl.String))
    assert known == pytest.approx(math.log(5))
    assert all(math.isnan(length) for length in unknown)


@pytest.mark.parametrize(
    "text",
    [
        "We no longer rent the boat.",
        "I don't row any more",
        "I don't row any longer.",
        "I gave up the garden.",
        "Giving up rowing was hard.",
        "They called off the race.",
        "She broke up with Bo.",
        "I sold it.",
        "I quit.",
        "The club is off.",
        "It is not Bergen but Oslo.",
        "From now on it is Oslo.",
        "Oslo instead of Bergen.",
        "I SWITCHED to tea",
        "I gave the old bike away last week.",
        "They called the whole summer regatta off.",
        "We gave notice to the landlord.",
        "They threw it out",
        "I let my ticket for the pool run out.",
        "Our lease lapsed.",
        "My card expires in May",
    ],
)
def test_words_of_change_are_recognised(text: str) -> None:
    assert says_changed(pl.Series([text])).tolist() == [True]


@pytest.mark.parametrize(
    "text",
    [
        "I live in Oslo.",
        "We know the news.",
        "It is not here. But I came.",
        "She gave me a book. Away we went.",
        "Let me go over it.",
        "She handed me a pen, and we sat there for an hour or two in silence.",
        "",
        None,
    ],
)
def test_other_texts_say_of_no_change(text: str | None) -> None:
    assert says_changed(pl.Series([text], dtype=pl.String)).tolist() == [False]
