"""What a server has counted since it started; plain numbers, for whoever shows them."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from enum import StrEnum


class Count(StrEnum):
    """What is counted."""

    OBSERVATIONS_ACCEPTED = "observations_accepted"
    USES_NOTED = "uses_noted"
    USES_DROPPED = "uses_dropped"
    USES_FLUSHED = "uses_flushed"
    SWAPS = "snapshot_swaps"
    SWAPS_FAILED = "snapshot_swaps_failed"


class Tally:
    """Counters that only grow, for several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[Count] = Counter(dict.fromkeys(Count, 0))

    def add(self, what: Count, number: int = 1) -> None:
        """Counts so many more."""
        with self._lock:
            self._counts[what] += number

    def read(self) -> Mapping[Count, int]:
        """All counters as they are now."""
        with self._lock:
            return dict(self._counts)
