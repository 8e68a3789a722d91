"""How often somebody may ask: token buckets, one a caller, in bounded memory."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address

HELD = 10_000
"""Buckets held in memory; beyond that those that were longest not asked are forgotten, which fills them."""


@dataclass(frozen=True)
class Rate:
    """How often: so many a second, and so many at once after a pause."""

    a_second: float
    burst: float

    @classmethod
    def of(cls, a_second: float) -> Rate:
        """The rate with a burst of two seconds' worth, at least one."""
        return cls(a_second, max(1.0, 2 * a_second))


class Buckets:
    """Token buckets by name; for several threads.

    Args:
        clock: a clock that never goes back, in seconds.
        held: how many buckets to hold.
    """

    def __init__(self, clock: Callable[[], float], held: int = HELD) -> None:
        self._clock, self._held = clock, held
        self._lock = threading.Lock()
        self._filled: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, name: str, rate: Rate) -> float:
        """Takes a token.

        Args:
            name: whose bucket.
            rate: how fast it fills, and how much it holds.

        Returns:
            0 where there was one; otherwise nothing was taken, and so many seconds later there will be one.
        """
        with self._lock:
            level = self._level(name, rate)
            taken = level >= 1
            self._filled[name] = (level - taken, self._clock())
            self._filled.move_to_end(name)
            while len(self._filled) > self._held:
                self._filled.popitem(last=False)
        return 0.0 if taken else (1 - level) / rate.a_second

    def wait(self, name: str, rate: Rate) -> float:
        """In how many seconds there is a token; takes none."""
        with self._lock:
            return max(0.0, (1 - self._level(name, rate)) / rate.a_second)

    def _level(self, name: str, rate: Rate) -> float:
        if name not in self._filled:
            return rate.burst
        level, at = self._filled[name]
        return min(rate.burst, level + (self._clock() - at) * rate.a_second)


def network(address: str) -> str:
    """Whose address it is: of IPv6 the network of 64 bits, since one caller has all addresses of it."""
    try:
        found = ip_address(address)
    except ValueError:
        return address[:100]
    if isinstance(found, IPv6Address) and found.ipv4_mapped is None:
        return str(IPv6Address(int(found) >> 64 << 64))
    return str(found)
