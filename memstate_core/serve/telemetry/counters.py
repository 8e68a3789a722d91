"""Counters of a server since its start."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from enum import StrEnum


class Count(StrEnum):
    """The names of the counters, as in metric names."""

    OBSERVATIONS_ACCEPTED = "observations_accepted"
    ACCESSES_RECORDED = "uses_noted"
    ACCESSES_DROPPED = "uses_dropped"
    ACCESSES_FLUSHED = "uses_flushed"
    SWAPS = "snapshot_swaps"
    SWAPS_FAILED = "snapshot_swaps_failed"


class Counters:
    """Thread-safe counters that only increase."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[Count] = Counter(dict.fromkeys(Count, 0))

    def add(self, what: Count, number: int = 1) -> None:
        """Increases a counter."""
        with self._lock:
            self._counts[what] += number

    def read(self) -> Mapping[Count, int]:
        """The current values of all counters."""
        with self._lock:
            return dict(self._counts)
