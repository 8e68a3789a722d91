"""Which processes are there, as Linux lists them, and programs in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
FRESH = "import serve"
"""What the command of a `memstate_core.state.process.fresh_process` has in it."""


def program(folder: Path, lines: Sequence[str]) -> subprocess.Popen[str]:
    """Starts a program that has these lines, and no guard; its output is text."""
    path = folder / "program.py"
    path.write_text("\n".join(lines))
    given = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.Popen([sys.executable, path], env=given, stdout=subprocess.PIPE, text=True)


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
