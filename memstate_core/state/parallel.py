"""Calls of one function for many items, in this process and in others beside it.

The others are fresh interpreters that import the function by its name: they share no thread and no lock with this
process, and never run the program that started it again, as a process of `multiprocessing` may. They end with it, even
if it is killed; joblib's stay for minutes then, and are no faster (`tests/benchmarks/scope_processes.py`).
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Condition, Thread
from typing import IO, Generic, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

_SERVE = "from memstate_core.state.parallel import serve; serve()"


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
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path or str(Path.cwd()) for path in sys.path)}
    command = [sys.executable, "-P", "-c", _SERVE]  # it imports from where this process does, and from nowhere else
    process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    asked, answered = process.stdin, process.stdout
    assert asked is not None
    assert answered is not None
    thread = Thread(target=_ask, args=(asked, answered, work, shared), daemon=True)
    thread.start()
    try:
        yield
    finally:
        process.kill()
        thread.join()
        for pipe in (asked, answered):
            with suppress(OSError):  # what was not sent is not sent any more
                pipe.close()
        process.wait()


def _ask(asked: IO[bytes], answered: IO[bytes], work: Callable[[Item], Result], shared: _Shared[Item, Result]) -> None:
    """Has a process do item after item, until none is left or it fails at one."""
    with suppress(OSError, EOFError, pickle.UnpicklingError):
        pickle.dump(work, asked, pickle.HIGHEST_PROTOCOL)
        while (place := shared.take()) is not None:
            try:
                pickle.dump(shared.items[place], asked, pickle.HIGHEST_PROTOCOL)
                asked.flush()
                result = pickle.load(answered)
            except BaseException:
                shared.give_back(place)
                raise
            shared.put(place, result)


def serve() -> None:
    """What another process does, until its input ends: reads a function, then items, and writes results."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it ends with the process that started it
    results = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print does not get among the results
    with suppress(Exception):  # the other process meets the same error, and says so
        work = pickle.load(sys.stdin.buffer)
        while True:
            pickle.dump(work(pickle.load(sys.stdin.buffer)), results, pickle.HIGHEST_PROTOCOL)
            results.flush()
