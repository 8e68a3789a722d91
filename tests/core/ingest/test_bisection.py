"""Bisection finds exactly the rows with which something fails, within a bounded number of attempts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memstate_core.ingest.bisection import guilty_rows


@given(st.integers(1, 40), st.sets(st.integers(0, 39), min_size=1, max_size=4), st.booleans())
def test_the_search_finds_exactly_the_rows_that_fail(count: int, guilty: set[int], together: bool) -> None:
    guilty = {number % count for number in guilty}

    def fails(rows: list[int]) -> bool:
        left = guilty & set(rows)
        return left == guilty if together else bool(left)

    assert guilty_rows(range(count), fails) == ([max(guilty)] if together else sorted(guilty))


def test_a_long_search_returns_groups_rather_than_going_on() -> None:
    tried: list[int] = []

    def fails(rows: list[int]) -> bool:
        tried.append(len(rows))
        return 7 in rows

    found = guilty_rows(range(64), fails, most_attempts=4)
    assert 7 in found
    assert 1 < len(found) < 64
    assert len(tried) <= 2 * 4


def test_no_row_is_guilty_of_a_failure_that_comes_without_rows_or_not_at_all() -> None:
    assert guilty_rows(range(5), lambda _: True) == []
    assert guilty_rows(range(5), lambda _: False) == []
    assert guilty_rows([], lambda _: True) == []
