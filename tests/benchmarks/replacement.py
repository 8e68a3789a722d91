"""Cache replacement: least recently used, least frequently used, ARC and the offline optimum, in two regimes.

By request a policy decides at each request; the optimum and LFU may leave out the requested key. By night it
decides at the end of each night's requests, and its active set does not change until the end of the next. Keys are
numbers 0 .. count - 1, a trace is an array of them (n,), and hits are one truth value a request (n,).
"""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


# --- by request


def lru_hits(trace: Ints, capacity: int) -> Bools:
    """The least recently used leaves."""
    resident: OrderedDict[int, None] = OrderedDict()
    hits = np.zeros(len(trace), bool)
    for row, key in enumerate(trace.tolist()):
        if key in resident:
            hits[row] = True
            resident.move_to_end(key)
            continue
        if len(resident) == capacity:
            resident.popitem(last=False)
        resident[key] = None
    return hits


def lfu_hits(trace: Ints, capacity: int) -> Bools:
    """The least often used since the trace began leaves, of equals the one used longest ago."""
    counts: dict[int, int] = {}
    order: dict[int, tuple[int, int]] = {}
    worth: list[tuple[tuple[int, int], int]] = []
    hits = np.zeros(len(trace), bool)
    for row, key in enumerate(trace.tolist()):
        counts[key] = counts.get(key, 0) + 1
        own = (counts[key], row)
        if key in order:
            hits[row] = True
            order[key] = own
        elif len(order) < capacity:
            order[key] = own
            heapq.heappush(worth, (own, key))
        elif _lowest(worth, order) < own:
            del order[heapq.heapreplace(worth, (own, key))[1]]
            order[key] = own
    return hits


def optimal_hits(trace: Ints, capacity: int) -> Bools:
    """The key that is used again last is evicted or not admitted (Belady, IBM Systems Journal 5(2), 1966)."""
    upcoming = next_requests(trace).tolist()
    order: dict[int, int] = {}
    worth: list[tuple[int, int]] = []
    hits = np.zeros(len(trace), bool)
    for row, key in enumerate(trace.tolist()):
        own = -upcoming[row]
        if key in order:
            hits[row] = True
        elif len(order) >= capacity:
            if worth[0][0] >= own:
                continue
            del order[heapq.heappop(worth)[1]]
        order[key] = own
        heapq.heappush(worth, (own, key))
        while order.get(worth[0][1]) != worth[0][0]:
            heapq.heappop(worth)
    return hits


def next_requests(trace: Ints) -> Ints:
    """The row of the next request for the same key; n where there is none (n,)."""
    order = np.argsort(trace, kind="stable")
    upcoming = np.full(len(trace), len(trace))
    same = np.flatnonzero(np.diff(trace[order]) == 0)
    upcoming[order[same]] = order[same + 1]
    return upcoming


def arc_hits(trace: Ints, capacity: int, night: int) -> tuple[Bools, list[Ints]]:
    """Hits of the adaptive replacement cache, and what it holds at the end of each whole night."""
    cache, held = Arc(capacity), []
    hits = np.zeros(len(trace), bool)
    for row, key in enumerate(trace.tolist()):
        hits[row] = cache.ask(key)
        if (row + 1) % night == 0:
            held.append(cache.resident())
    return hits, held


class Arc:
    """Adaptive replacement cache (Megiddo and Modha, FAST 2003, figure 4).

    Keys seen once lately and more often lately are in `once` and `often`, oldest first; `once_ghosts` and
    `often_ghosts` keep the keys evicted from them. `target` is how many places `once` should have.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.target = 0
        self.once: OrderedDict[int, None] = OrderedDict()
        self.often: OrderedDict[int, None] = OrderedDict()
        self.once_ghosts: OrderedDict[int, None] = OrderedDict()
        self.often_ghosts: OrderedDict[int, None] = OrderedDict()

    def ask(self, key: int) -> bool:
        """Takes a request; whether it is a hit."""
        if key in self.once or key in self.often:
            (self.once if key in self.once else self.often).pop(key)
            self.often[key] = None
            return True
        if key in self.once_ghosts:
            self.target = min(self.capacity, self.target + max(1, len(self.often_ghosts) // len(self.once_ghosts)))
            self._return(key, self.once_ghosts, among_often=False)
        elif key in self.often_ghosts:
            self.target = max(0, self.target - max(1, len(self.once_ghosts) // len(self.often_ghosts)))
            self._return(key, self.often_ghosts, among_often=True)
        else:
            self._make_room()
            self.once[key] = None
        return False

    def resident(self) -> Ints:
        """The keys that it holds."""
        return np.array([*self.once, *self.often], np.int64)

    def _return(self, key: int, ghosts: OrderedDict[int, None], *, among_often: bool) -> None:
        self._replace(among_often=among_often)
        del ghosts[key]
        self.often[key] = None

    def _make_room(self) -> None:
        if len(self.once) + len(self.once_ghosts) == self.capacity:
            if self.once_ghosts:
                self.once_ghosts.popitem(last=False)
                self._replace(among_often=False)
            else:
                self.once.popitem(last=False)
            return
        everything = len(self.once) + len(self.often) + len(self.once_ghosts) + len(self.often_ghosts)
        if everything >= self.capacity:
            if everything == 2 * self.capacity:
                self.often_ghosts.popitem(last=False)
            self._replace(among_often=False)

    def _replace(self, *, among_often: bool) -> None:
        if len(self.once) + len(self.often) < self.capacity:
            return
        many = len(self.once) > self.target or (among_often and len(self.once) == self.target)
        if self.once and (many or not self.often):
            self.once_ghosts[self.once.popitem(last=False)[0]] = None
        else:
            self.often_ghosts[self.often.popitem(last=False)[0]] = None


def _lowest(worth: list[tuple[tuple[int, int], int]], order: dict[int, tuple[int, int]]) -> tuple[int, int]:
    """The lowest value; outdated entries are renewed on the way."""
    while worth[0][0] != order[worth[0][1]]:
        key = worth[0][1]
        heapq.heapreplace(worth, (order[key], key))
    return worth[0][0]


# --- by night


def nightly_hits(trace: Ints, night: int, active: Iterable[Ints]) -> Bools:
    """Requests for keys that were active after the night before; in the first night there are none.

    Args:
        trace: keys (n,).
        night: how many requests a night has.
        active: the active keys after the first night, after the second, and so on.
    """
    hits = np.zeros(len(trace), bool)
    for begin, keys in zip(range(night, len(trace), night), active, strict=False):
        held = np.zeros(int(trace.max()) + 1, bool)
        held[keys] = True
        hits[begin : begin + night] = held[trace[begin : begin + night]]
    return hits


def lru_nights(trace: Ints, capacity: int, night: int) -> Iterator[Ints]:
    """The keys used last."""
    last = np.full(int(trace.max(initial=-1)) + 1, -1)
    for begin in range(night, len(trace), night):
        last[trace[begin - night : begin]] = np.arange(begin - night, begin)
        yield best(last, capacity)


def lfu_nights(trace: Ints, capacity: int, night: int) -> Iterator[Ints]:
    """The keys used most often so far, of equals those used last."""
    size = int(trace.max(initial=-1)) + 1
    counts, last = np.zeros(size, np.int64), np.full(size, -1)
    for begin in range(night, len(trace), night):
        counts += np.bincount(trace[begin - night : begin], minlength=size)
        last[trace[begin - night : begin]] = np.arange(begin - night, begin)
        yield best(counts * len(trace) + last, capacity)


def optimal_nights(trace: Ints, capacity: int, night: int) -> Iterator[Ints]:
    """Of the keys seen so far those that the coming night asks for most."""
    size = int(trace.max(initial=-1)) + 1
    seen = np.zeros(size, bool)
    for begin in range(night, len(trace), night):
        seen[trace[begin - night : begin]] = True
        yield best(np.where(seen, np.bincount(trace[begin : begin + night], minlength=size), -1), capacity)


def best(worth: NDArray[np.int64] | NDArray[np.float64], capacity: int) -> Ints:
    """The keys worth most, without those worth less than nothing or minus infinity (up to capacity,)."""
    kept = np.flatnonzero(worth > -np.inf) if worth.dtype.kind == "f" else np.flatnonzero(worth >= 0)
    if len(kept) <= capacity:
        return kept
    return kept[np.argpartition(worth[kept], len(kept) - capacity)[len(kept) - capacity :]]
