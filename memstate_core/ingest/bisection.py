"""Bisection: finds the rows with which something fails, so that the others need not fail with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

Row = TypeVar("Row")

MOST_ATTEMPTS = 200
"""Attempts of one search; after that it returns groups of rows that fail together, innocent ones among them."""


def guilty_rows(
    suspects: Sequence[Row], fails: Callable[[list[Row]], bool], most_attempts: int = MOST_ATTEMPTS
) -> list[Row]:
    """The rows to leave out so that the others pass, found by halving.

    A row that fails only together with others is found too: of such rows the last one is returned.

    Args:
        suspects: the rows, in an order that repeats.
        fails: whether an attempt with some of them fails.
        most_attempts: limit on the number of attempts.

    Returns:
        The rows, in their order; empty if an attempt with all rows passes, or one without any fails.
    """
    search = _Search(fails, most_attempts)
    rows = list(suspects)
    if not rows or not search.fails_with(rows) or search.fails_with([]):
        return []
    return search.split([], rows)[0]


class _Search(Generic[Row]):
    """Attempts with parts of the suspects, counted."""

    def __init__(self, fails: Callable[[list[Row]], bool], left: int) -> None:
        self._fails, self._left = fails, left

    def fails_with(self, rows: list[Row]) -> bool:
        self._left -= 1
        return self._fails(rows)

    def split(self, good: list[Row], rows: list[Row]) -> tuple[list[Row], list[Row]]:
        """The guilty among rows that fail together with good ones, and all that pass together."""
        if len(rows) == 1 or self._left <= 0:
            return rows, good
        found: list[Row] = []
        for half in (rows[: len(rows) // 2], rows[len(rows) // 2 :]):
            both = good + half
            if self.fails_with(both):
                guilty, good = self.split(good, half)
                found += guilty
            else:
                good = both
        return found, good
