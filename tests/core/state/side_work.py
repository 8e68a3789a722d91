"""Functions that other processes import by their names (`memstate_core.state.process.parallel`)."""

from __future__ import annotations

import os
import time
from collections.abc import Callable


def whose(parent: int, number: int) -> tuple[int, int]:
    """The number and the process."""
    _leave_most_to_others(parent)
    return number, os.getpid()


def noisy(parent: int, number: int) -> tuple[int, int]:
    """Writes to the process's standard output."""
    _leave_most_to_others(parent)
    print(f"number {number}", flush=True)
    os.write(1, b"no pickle")
    return number, os.getpid()


def fatal(parent: int, number: int) -> int:
    """Ends any other process."""
    _leave_most_to_others(parent)
    if os.getpid() != parent:
        os._exit(9)
    return number


def refused(parent: int, number: int) -> int:
    """Raises for one number."""
    _leave_most_to_others(parent)
    if number == 3:
        raise ValueError(f"no {number}")
    return number


def unsendable(parent: int, number: int) -> Callable[[], int]:
    """A result that cannot be pickled."""
    _leave_most_to_others(parent)
    return lambda: number


def _leave_most_to_others(parent: int) -> None:
    if os.getpid() == parent:
        time.sleep(0.2)
