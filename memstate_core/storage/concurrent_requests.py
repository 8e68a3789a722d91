"""Requests to a storage side by side: each spends most of its time waiting for an answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

AT_ONCE = 8
"""How many requests are in progress at the same time."""


def at_once(request: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """The results of a function of each item, in the order of the items.

    The first error is raised in its turn. It ends the work: what is in progress is awaited, the rest is not begun.
    """
    with ThreadPoolExecutor(AT_ONCE, "memstate-storage") as pool:
        yield from pool.map(request, items)
