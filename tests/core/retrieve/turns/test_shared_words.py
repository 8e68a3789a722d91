"""The words that two turns share weigh their idf, but for those of sentences that both contain."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from memstate_core.retrieve.turns.shared_words import LONGEST, SharedWords

WEIGHTS = {"oslo": 4.0, "bergen": 4.0, "i": 0.5, "in": 0.25}


def shared(*texts: str | None) -> SharedWords:
    return SharedWords(
        pl.Series(texts, dtype=pl.String), lambda words: np.array([WEIGHTS.get(each, 1.0) for each in words])
    )


def between(*texts: str | None) -> float:
    """The weight of the words that the first of some texts shares with the second."""
    return float(shared(*texts).between(np.array([0]), np.array([1]))[0, 0])


@pytest.mark.parametrize(
    ("one", "other", "weight"),
    [
        ("I live in Oslo.", "I left OSLO", 4.5),
        ("I live in Oslo, Oslo!", "Oslo? Oslo", 4.0),
        ("I live in Oslo.", "Bergen it is", 0.0),
        ("Oslo", None, 0.0),
        ("", "", 0.0),
    ],
)
def test_each_shared_word_counts_once_by_its_weight(one: str, other: str | None, weight: float) -> None:
    assert between(one, other) == pytest.approx(weight)


def test_words_of_a_repeated_sentence_do_not_count() -> None:
    assert between("The lift is broken. I live in Oslo.", "I left Oslo. The lift is broken.") == pytest.approx(4.5)
    assert between("I live in Oslo.", "I live in Oslo!") == pytest.approx(0.0)


def test_every_pair_of_rows_is_compared() -> None:
    found = shared("I live in Oslo.", "Oslo", "Bergen", "I left Bergen").between(np.array([0, 3]), np.array([1, 2, 3]))
    assert found.tolist() == [[4.0, 0.0, 0.5], [0.0, 4.0, 0.0]]
    nothing = shared("Oslo").between(np.array([], dtype=np.intp), np.array([0]))
    assert nothing.shape == (0, 1)


def test_only_the_beginning_of_a_long_turn_is_read() -> None:
    assert between("." * LONGEST + " Oslo", "Oslo") == 0.0


def test_the_words_of_a_row_that_weigh_enough() -> None:
    assert shared("I left Oslo for Bergen.").of(0, 4.0) == ["bergen", "oslo"]
    assert shared("I left Oslo.").of(0, 5.0) == []


def test_a_word_is_weighed_once() -> None:
    asked: list[str] = []
    words = SharedWords(pl.Series(["a b", "b c"]), lambda given: asked.extend(given) or np.ones(len(given)))  # type: ignore[func-returns-value]
    for _ in range(2):
        words.between(np.array([0]), np.array([1]))
    assert sorted(asked) == ["a", "b", "c"]
