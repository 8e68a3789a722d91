"""Groups of texts that are encoded together: those that are padded to one length.

A text is padded to a length that follows from its own number of tokens, never to that of its neighbours, so that sums
over tokens are added in the same order whatever is encoded with it.
"""

from __future__ import annotations

from collections.abc import Sequence

PADDED = 8
"""Tokens to whose multiple a text is padded."""


def by_length(tokens: Sequence[int]) -> list[tuple[int, list[int]]]:
    """The rows of each padded length, the shortest first.

    Args:
        tokens: how many tokens each text has.
    """
    groups: dict[int, list[int]] = {}
    for row, count in enumerate(tokens):
        groups.setdefault(-(-count // PADDED) * PADDED, []).append(row)
    return sorted(groups.items())
