"""Which core a worker of the tests and the processes that it starts run on.

Threads of Polars, Kuzu and Delta hand small pieces of work to each other all the time, and to wake one on another core
costs more than the piece: on one core, the same tests take a tenth less CPU time and a fifth less time.
"""

from __future__ import annotations

import os
from contextlib import suppress


def on_a_core_of_its_own(worker: int) -> None:
    """Keeps this process on one core, the first worker on the first; workers beyond the cores run where there is room.

    Does nothing where the system cannot do so.
    """
    with suppress(AttributeError, OSError):
        cores = sorted(os.sched_getaffinity(0))
        if worker < len(cores):
            os.sched_setaffinity(0, {cores[worker]})
