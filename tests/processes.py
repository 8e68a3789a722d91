"""Which processes are there, as Linux lists them."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path


def children(process: int, named: str) -> list[int]:
    """The processes that one started, whose command has a text, and that have not ended."""
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        try:
            state, command = (each / "stat").read_text(), (each / "cmdline").read_text()
        except OSError:
            continue
        fields = state.rpartition(")")[2].split()
        if int(fields[1]) == process and fields[0] != "Z" and named in command:
            found.append(int(each.name))
    return sorted(found)


def is_alive(process: int) -> bool:
    """Whether a process has not ended."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def until(holds: Callable[[], bool], seconds: float = 90) -> None:
    """Waits until something holds."""
    ends = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < ends
        time.sleep(0.1)
