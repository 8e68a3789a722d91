"""A semaphore whose waiters go on in the order in which they came; that of `threading` lets newcomers pass them."""

from __future__ import annotations

import threading
from collections import deque
from types import TracebackType


class FairSemaphore:
    """Lets a number of threads go on at a time, as a context manager.

    Args:
        places: how many.
    """

    def __init__(self, places: int) -> None:
        self._free, self._changing = places, threading.Lock()
        self._waiting: deque[threading.Lock] = deque()

    def __enter__(self) -> None:
        with self._changing:
            if self._free:
                self._free -= 1
                return
            mine = threading.Lock()
            mine.acquire()
            self._waiting.append(mine)
        mine.acquire()  # until a thread that leaves hands its place over

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._changing:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._free += 1
