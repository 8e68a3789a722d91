"""The form of a turn: how long it is, and which share of its sentences ask, in several scripts."""

from __future__ import annotations

import math

import polars as pl
import pytest

from memstate_core.retrieve.turn_traits import asking_shares, text_lengths


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
