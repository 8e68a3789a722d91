"""Memory that a graph is written from holds nothing of the process's past.

Kuzu 0.11.3 writes whole buffers into a graph's file without clearing them, and gets memory that was freed before:
pieces of any text that the process has read, of other scopes or of somebody who was erased, would lie in the published
file. glibc clears what it hands out if it is asked to.
Other C libraries have no such setting: nothing is cleared there.

Source: mallopt(3), `M_PERTURB`: memory is initialised to the complement of the value.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_PERTURB, _TO_ZEROS, _NOT_AT_ALL = -6, 0xFF, 0

_lock = threading.Lock()
_blocks = 0
"""How many blocks are open in this process: the setting is that of the process."""


@contextmanager
def cleared_memory() -> Iterator[None]:
    """Within it, all threads of the process get cleared memory, but for pieces of less than a kilobyte."""
    _count(1)
    try:
        yield
    finally:
        _count(-1)


def _count(more: int) -> None:
    global _blocks
    with _lock:
        before, _blocks = _blocks, _blocks + more
        if not before or not _blocks:
            _mallopt()(_PERTURB, _TO_ZEROS if _blocks else _NOT_AT_ALL)


def _mallopt() -> Any:
    """Glibc's function, or one that does nothing."""
    return getattr(ctypes.CDLL(None), "mallopt", lambda *_: 0)
