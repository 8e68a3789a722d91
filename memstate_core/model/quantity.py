"""Counts in messages."""

from __future__ import annotations


def quantity(count: int, plural: str) -> str:
    """`2,000 topics created`; of one, the first word in the singular: `1 topic created`."""
    word, space, more = plural.partition(" ")
    if count == 1:
        word = word.removesuffix("es" if word.endswith("sses") else "s")
    return f"{count:,} {word}{space}{more}"
