"""Turns know their neighbours in the session, and windows their length."""

from __future__ import annotations

import numpy as np
import polars as pl

from memstate_core.model.frames import MOMENT
from memstate_core.retrieve.index.windows import MISSING, session_windows, window_lengths, window_members
from tests.core.retrieve.conftest import day


def evidence(*rows):
    """(scope, session, turn, day) in the order of the file."""
    frame = pl.DataFrame(rows, schema=["scope", "session_id", "turn", "observed_at"], orient="row")
    return frame.with_columns(pl.col("observed_at").map_elements(day, MOMENT))


def test_neighbours_are_of_the_same_session_and_scope():
    rows = evidence(
        ("a", "s", 1, 0), ("a", "t", 1, 1), ("a", "s", 2, 2), ("a", None, None, 3), ("a", "s", 3, 4), ("b", "s", 0, 0)
    )  # fmt: skip
    windows = session_windows(rows, np.array([0, 0, 0, 0, 0, 5]))
    assert windows.tolist() == [
        [MISSING, 2, 0], [MISSING, MISSING, 1], [0, 4, 0],
        [MISSING, MISSING, 3], [2, MISSING, 0], [MISSING, MISSING, 0],
    ]  # fmt: skip


def test_turn_numbers_order_a_session_and_time_where_there_are_none():
    rows = evidence(("a", "s", 2, 0), ("a", "s", 1, 1), ("a", "u", None, 2), ("a", "u", None, 3))
    windows = session_windows(rows, np.zeros(4, dtype=int))
    assert windows.tolist() == [[1, MISSING, 0], [MISSING, 0, 0], [MISSING, 3, 2], [2, MISSING, 2]]


def test_members_are_counted_over_the_file():
    windows = np.array([[MISSING, 1, 0], [0, MISSING, 0], [MISSING, 1, 0], [0, MISSING, 0]], dtype=np.int32)
    members = window_members(windows, np.array([0, 0, 2, 2]))
    assert sorted(members.rows()) == [(0, 1), (1, 0), (2, 3), (3, 2)]


def test_the_length_of_a_window_is_that_of_its_summed_vectors():
    vectors = np.eye(3, dtype=np.float32)
    windows = np.array([[MISSING, 1, 0], [0, 2, 0], [1, MISSING, 0], [MISSING, MISSING, 3]], dtype=np.int32)
    lengths = window_lengths(windows, np.zeros(4, dtype=int), np.array([0, MISSING, 2, MISSING]), vectors)
    assert np.allclose(lengths, [1, np.sqrt(2), 1, 0])
    none = window_lengths(windows, np.zeros(4, dtype=int), np.full(4, MISSING), vectors[:0])
    assert none.tolist() == [0, 0, 0, 0]
