"""Rate limits: token buckets, one per caller, in bounded memory."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address

from cachetools import LRUCache

from memstate_core.serve.workers.shared import BucketTable

MAX_BUCKETS = 10_000
"""Buckets held in memory; beyond that the least recently used are evicted, which refills them."""


@dataclass(frozen=True)
class Rate:
    """A rate: tokens per second, and the burst allowed after a pause."""

    a_second: float
    burst: float

    @classmethod
    def of(cls, a_second: float) -> Rate:
        """The rate with a burst of two seconds' worth, at least one."""
        return cls(a_second, max(1.0, 2 * a_second))


class Buckets:
    """Token buckets by name; thread-safe.

    Args:
        clock: a monotonic clock, in seconds.
        held: how many buckets to hold.
        table: where the processes of one server keep them; None for this process alone.
    """

    def __init__(self, clock: Callable[[], float], held: int = MAX_BUCKETS, table: BucketTable | None = None) -> None:
        self._clock = clock
        self._lock: AbstractContextManager[object] = threading.Lock() if table is None else table
        self._filled: LRUCache[str, tuple[float, float]] | BucketTable = LRUCache(held) if table is None else table

    def take(self, name: str, rate: Rate) -> float:
        """Takes a token.

        Args:
            name: the bucket.
            rate: how fast it fills and how much it holds.

        Returns:
            0 if a token was taken; otherwise the number of seconds until one is available.
        """
        with self._lock:
            level = self._level(name, rate)
            is_taken = level >= 1
            self._filled[name] = (level - is_taken, self._clock())
        return 0.0 if is_taken else (1 - level) / rate.a_second

    def wait(self, name: str, rate: Rate) -> float:
        """The number of seconds until a token is available; takes none."""
        with self._lock:
            return max(0.0, (1 - self._level(name, rate)) / rate.a_second)

    def _level(self, name: str, rate: Rate) -> float:
        level, at = self._filled.get(name, (rate.burst, self._clock()))
        return min(rate.burst, level + (self._clock() - at) * rate.a_second)


def network(address: str) -> str:
    """The network of an address: the /64 prefix for IPv6, since one caller usually has a whole /64."""
    try:
        found = ip_address(address)
    except ValueError:
        return address[:100]
    if isinstance(found, IPv6Address) and found.ipv4_mapped is None:
        return str(IPv6Address(int(found) >> 64 << 64))
    return str(found)
