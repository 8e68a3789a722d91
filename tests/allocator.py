"""How processes of the tests get memory from glibc: from one heap that keeps what is freed.

By default glibc gives large blocks back to the system at once and keeps a heap for each thread, and Linux clears each
page that is asked for again: a third of the time that these tests spend in the system, a tenth of all their CPU time.
What memstate itself sets (`memstate_core.state.process.cleared_memory`) is another setting and stays as it is.

Source: mallopt(3), which names the settings, and the environment variables that other processes read at their start.
"""

from __future__ import annotations

import ctypes
from collections.abc import MutableMapping

_MOST_BY_HEAP = 32 << 20
"""Bytes of the largest block that the heap holds; glibc refuses more."""

SETTINGS = {
    "MALLOC_ARENA_MAX": (-8, 1),
    "MALLOC_MMAP_THRESHOLD_": (-3, _MOST_BY_HEAP),
    "MALLOC_TRIM_THRESHOLD_": (-1, 2**31 - 1),
    "MALLOC_TOP_PAD_": (-2, 16 << 20),
}
"""The number and the value of each setting by its environment variable."""


def one_heap(environ: MutableMapping[str, str]) -> bool:
    """Makes this process, and those that it starts with an environment, keep what they free; False without glibc.

    Args:
        environ: the environment; settings that it already has stay those of other processes.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    for name, (number, value) in SETTINGS.items():
        environ.setdefault(name, str(value))
        if not mallopt(number, value):
            raise OSError(f"glibc refuses {name}={value}")
    return True
