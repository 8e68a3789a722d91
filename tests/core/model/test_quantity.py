"""Counts in messages."""

from __future__ import annotations

import pytest

from memstate_core.model.quantity import quantity


@pytest.mark.parametrize(
    ("count", "plural", "shown"),
    [
        (1, "questions", "1 question"),
        (2000, "questions", "2,000 questions"),
        (1, "topics created", "1 topic created"),
        (1, "accesses", "1 access"),
        (1, "evidence", "1 evidence"),
        (1, "summarised", "1 summarised"),
        (0, "nights", "0 nights"),
    ],
)
def test_one_is_in_the_singular(count: int, plural: str, shown: str) -> None:
    assert quantity(count, plural) == shown
