"""Counters of a server since its start."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from enum import StrEnum
from typing import Protocol


class Count(StrEnum):
    """The names of the counters, as in metric names."""

    OBSERVATIONS_ACCEPTED = "observations_accepted"
    ACCESSES_RECORDED = "uses_noted"
    ACCESSES_DROPPED = "uses_dropped"
    ACCESSES_FLUSHED = "uses_flushed"
    SWAPS = "snapshot_swaps"
    SWAPS_FAILED = "snapshot_swaps_failed"


class Shared(Protocol):
    """Counters that several processes add up."""

    def add(self, place: int, number: int) -> None:
        """Increases a counter."""

    def sums(self) -> list[int]:
        """The sum of each counter over all processes."""


class Counters:
    """Thread-safe counters that only increase.

    Args:
        shared: where the processes of one server add up theirs; None if there is one process.
    """

    def __init__(self, shared: Shared | None = None) -> None:
        self._lock, self._shared = threading.Lock(), shared
        self._counts: Counter[Count] = Counter(dict.fromkeys(Count, 0))

    def add(self, what: Count, number: int = 1) -> None:
        """Increases a counter."""
        with self._lock:
            self._counts[what] += number
            if self._shared is not None:
                self._shared.add(list(Count).index(what), number)

    def read(self) -> Mapping[Count, int]:
        """The current values of all counters."""
        with self._lock:
            own = dict(self._counts)
        return own if self._shared is None else dict(zip(Count, self._shared.sums(), strict=True))
