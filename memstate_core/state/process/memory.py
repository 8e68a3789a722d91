"""The memory budget of a run: a limit on the data segments of the process, where the system has one.

A process that asks for more gets a MemoryError (or dies, if a library cannot handle one) instead of taking the memory
of the whole machine. The graph database reserves far more address space than it uses; `reserving` leaves it out.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MIB = 1 << 20
SHARE = 0.8
"""The share of the machine's memory that a run may take unless the settings say otherwise."""

_STATUS = Path("/proc/self/status")


@contextmanager
def memory_budget(mib: int) -> Iterator[None]:
    """Limits what the process may allocate inside the block, beyond what it holds at its beginning.

    Does nothing where the system has no such limit (RLIMIT_DATA of Linux), or has a lower one already.

    Args:
        mib: the budget in MiB; 0 for `SHARE` of the machine's memory.
    """
    held = _data_bytes()
    if held is None:
        yield
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limit = held + (mib * MIB if mib else int(SHARE * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")))
    if resource.RLIM_INFINITY not in (soft, hard) and limit >= min(soft, hard):
        yield
        return
    resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))
    try:
        yield
    finally:
        reserved = resource.getrlimit(resource.RLIMIT_DATA)[0] - limit  # by blocks that outlast this one
        resource.setrlimit(resource.RLIMIT_DATA, (soft if soft == resource.RLIM_INFINITY else soft + reserved, hard))


@contextmanager
def reserving(size: int) -> Iterator[None]:
    """Raises the limit by address space that is reserved inside the block and mostly not used.

    A block may outlast the budget in which it began, and end within another one.

    Args:
        size: bytes of address space.
    """
    _raise_limit(size)
    try:
        yield
    finally:
        _raise_limit(-size)


def return_freed() -> None:
    """Returns freed memory to the system, of which glibc else keeps what lies between blocks in use.

    Source: malloc_trim(3). Other C libraries have no such function: nothing is returned there.
    """
    getattr(ctypes.CDLL(None), "malloc_trim", lambda _pad: 0)(0)


def _raise_limit(size: int) -> None:
    if _data_bytes() is None:
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if soft != resource.RLIM_INFINITY:
        resource.setrlimit(resource.RLIMIT_DATA, (soft + size, hard))


def _data_bytes() -> int | None:
    """What counts towards the limit, or None where the system does not show it."""
    try:
        found = re.search(r"^VmData:\s+(\d+) kB", _STATUS.read_text(), re.MULTILINE)
    except OSError:
        return None
    return int(found.group(1)) << 10 if found else None
