"""How much the context of a turn counts, learnt from whether its neighbours are about the same."""

from __future__ import annotations

import numpy as np

from memstate_core.retrieve.index.windows import MISSING
from memstate_core.retrieve.turns.coherence import context_weight

TURNS = 400
ROWS = np.arange(TURNS)
FOLLOWERS = np.append(ROWS[1:], MISSING)


def unit(vectors: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / lengths, dtype=np.float32)


def chat(subject_turns: int, speakers: np.ndarray) -> float:
    """The weight of a chat whose subject changes every so many turns, and whose speakers have a manner each."""
    random = np.random.default_rng(1)
    subjects = np.repeat(random.normal(size=(TURNS // subject_turns, 384)), subject_turns, axis=0)
    manners = 3 * random.normal(size=(speakers.max() + 1, 384))
    vectors = unit(subjects + random.normal(size=(TURNS, 384)) + manners[speakers])
    return context_weight(vectors, ROWS, FOLLOWERS, speakers)


def test_the_context_of_a_conversation_counts_and_that_of_a_list_does_not() -> None:
    alone = np.zeros(TURNS, dtype=np.int64)
    assert chat(1, alone) < 0.1
    assert chat(10, alone) > 0.4
    assert chat(1, alone) < chat(2, alone) < chat(10, alone)


def test_the_manner_of_speakers_is_no_subject() -> None:
    assert chat(1, ROWS // 2 % 2) < 0.1


def test_a_chat_of_a_few_turns_counts_as_coherent() -> None:
    one = np.zeros(1, dtype=np.int64)
    assert context_weight(unit(np.ones((1, 384))), one, one + MISSING, one) == 1
    random = unit(np.random.default_rng(2).normal(size=(3, 384)))
    rows = np.arange(3)
    weight = context_weight(random, rows, np.array([1, 2, MISSING]), np.zeros(3, dtype=np.int64))
    assert 0.7 < weight <= 1


def test_turns_without_a_vector_are_left_out() -> None:
    rows = np.where(ROWS % 2 == 0, ROWS, MISSING)
    assert context_weight(unit(np.ones((TURNS, 384))), rows, FOLLOWERS, ROWS * 0) == 1
