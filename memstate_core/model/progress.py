"""Progress of long phases, such as encoding or importing: how many units are done, reported to listeners.

Listeners are set for a block of code. Without one, a report adds no cost. Progress never enters results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeVar

Item = TypeVar("Item")


@dataclass(frozen=True)
class Progress:
    """The state of a phase.

    Attributes:
        phase: its name, such as `encode` or a step's name.
        done: units done so far.
        total: units in all.
        unit: the plural of what is counted.
    """

    phase: str
    done: int
    total: int
    unit: str


Listener = Callable[[Progress], None]
_LISTENERS: ContextVar[tuple[Listener, ...]] = ContextVar("progress_listeners", default=())


@contextmanager
def progress_to(listener: Listener) -> Iterator[None]:
    """Also reports the progress of the block to a listener."""
    token = _LISTENERS.set((*_LISTENERS.get(), listener))
    try:
        yield
    finally:
        _LISTENERS.reset(token)


def report_progress(progress: Progress) -> None:
    """Reports progress to all listeners."""
    for listener in _LISTENERS.get():
        listener(progress)


def tracked(
    items: Iterable[Item], phase: str, total: int, unit: str, size: Callable[[Item], int] = lambda _item: 1
) -> Iterator[Item]:
    """The items, with a report before the first and after each.

    Args:
        items: the parts of the work.
        phase: the name of the phase.
        total: units of all items.
        unit: the plural of what is counted.
        size: units of an item; one each by default.
    """
    done = 0
    report_progress(Progress(phase, done, total, unit))
    for item in items:
        yield item
        done += size(item)
        report_progress(Progress(phase, min(done, total), total, unit))
