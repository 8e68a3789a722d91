"""Calls of one function for many items, in threads of this process, or in it and in others beside it.

The other processes are fresh interpreters that import the function by its name (`fresh_process`). They end with this
one, even if it is killed; joblib's stay for minutes then, and are no faster (`tests/benchmarks/scope_processes.py`).
"""

from __future__ import annotations

import pickle
import signal
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from threading import Condition, Thread
from typing import Generic, TypeVar

from memstate_core.state.process.fresh_process import FreshProcess

Item = TypeVar("Item")
Result = TypeVar("Result")


def cores() -> int:
    """How many CPU cores this process may use, by its affinity and by the limits of its container."""
    from joblib import cpu_count  # only here: importing it takes a while

    return int(cpu_count())


def mapped(work: Callable[[Item], Result], items: Sequence[Item], processes: int) -> Generator[Result]:
    """Calls a function for each item, in several processes at a time.

    What another process cannot do, such as one that dies for lack of memory, is done in this one.

    Args:
        work: the function, or a partial of one; can be pickled, and gives the same in any process.
        items: what it is called with; can be pickled, as the results can.
        processes: how many at most, this one included.

    Yields:
        The results, in the order of the items.

    Raises:
        Exception: what the function raises for an item.
    """
    if (others := min(processes, len(items)) - 1) < 1:
        yield from map(work, items)
        return
    shared: _Shared[Item, Result] = _Shared(items)
    with ExitStack() as started:
        for _ in range(others):
            started.enter_context(_beside(work, shared))
        for place in range(len(items)):
            while not shared.has(place):
                if (taken := shared.take()) is not None:
                    shared.put(taken, work(items[taken]))
            yield shared.results.pop(place)


def in_threads(work: Callable[[Item], Result], items: Sequence[Item], *, threads: int) -> list[Result]:
    """Calls a function for each item, in several threads of this process at a time.

    Args:
        work: spends its time where Python's lock is not held, as in most functions of NumPy, SciPy and Polars.
        items: what it is called with.
        threads: how many at most.

    Returns:
        The results, in the order of the items.

    Raises:
        Exception: what the function raises for an item.
    """
    if threads < 2 or len(items) < 2:
        return list(map(work, items))
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, items))


class _Shared(Generic[Item, Result]):
    """The items that nobody has taken yet, and the results so far, by place; several threads use it."""

    def __init__(self, items: Sequence[Item]) -> None:
        self.items, self.results = items, dict[int, Result]()
        self._left, self._changed = deque(range(len(items))), Condition()

    def take(self) -> int | None:
        """The place of the next item, None where all are taken."""
        with self._changed:
            return self._left.popleft() if self._left else None

    def put(self, place: int, result: Result) -> None:
        """Keeps a result."""
        with self._changed:
            self.results[place] = result
            self._changed.notify_all()

    def give_back(self, place: int) -> None:
        """Makes an item the next one to be taken again."""
        with self._changed:
            self._left.appendleft(place)
            self._changed.notify_all()

    def has(self, place: int) -> bool:
        """Whether a result is there; waits for it while no item is left."""
        with self._changed:
            self._changed.wait_for(lambda: self._left or place in self.results)
            return place in self.results


@contextmanager
def _beside(work: Callable[[Item], Result], shared: _Shared[Item, Result]) -> Iterator[None]:
    """Has another process take items for the length of the block."""
    process = FreshProcess()
    thread = Thread(target=_ask, args=(process, work, shared), daemon=True)
    thread.start()
    try:
        yield
    finally:
        process.kill()
        thread.join()
        process.close()


def _ask(process: FreshProcess, work: Callable[[Item], Result], shared: _Shared[Item, Result]) -> None:
    """Has a process do item after item, until none is left or it fails at one."""
    with suppress(OSError, EOFError, pickle.UnpicklingError):
        process.ask(partial(_quietly, work))
        while (place := shared.take()) is not None:
            try:
                process.ask(shared.items[place])
                result = process.answer()
            except BaseException:
                shared.give_back(place)
                raise
            shared.put(place, result)


@contextmanager
def _quietly(work: Callable[[Item], Result]) -> Iterator[Callable[[Item], Result]]:
    """In the other process: whatever fails there is done in the process that started it, which says so then."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it ends with that process
    with suppress(Exception):
        yield work
