"""Processes that start together end together, however the first of them ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from memstate_pipeline.processes import Ended, run_together

WAIT = "import time; time.sleep(60)"


def noting(folder: Path, name: str, code: str) -> list[str]:
    """A process that writes its number to a file and then runs code."""
    return [sys.executable, "-c", f"import os; open({str(folder / name)!r}, 'w').write(str(os.getpid())); {code}"]


def is_alive(number: int) -> bool:
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    return True


def numbers(folder: Path) -> list[int]:
    return [int(path.read_text()) for path in folder.iterdir()]


def gone(folder: Path, seconds: float = 10) -> bool:
    """Whether all processes end within some time."""
    until = time.monotonic() + seconds
    while any(map(is_alive, numbers(folder))) and time.monotonic() < until:
        time.sleep(0.05)
    return not any(map(is_alive, numbers(folder)))


@pytest.mark.parametrize(("code", "expected"), [("raise SystemExit(3)", 3), ("os.kill(os.getpid(), 9)", -9)])
def test_when_one_ends_the_others_are_ended(tmp_path: Path, code: str, expected: int) -> None:
    commands = {
        "long": noting(tmp_path, "long", WAIT),
        "short": noting(tmp_path, "short", f"import time; time.sleep(0.5); {code}"),
    }
    assert run_together(commands, os.environ) == Ended("short", expected)
    assert len(numbers(tmp_path)) == 2
    assert gone(tmp_path)


def test_a_command_that_cannot_start_leaves_nothing(tmp_path: Path) -> None:
    commands = {"long": noting(tmp_path, "long", WAIT), "missing": [str(tmp_path / "no-such-program")]}
    with pytest.raises(FileNotFoundError):
        run_together(commands, os.environ)
    assert gone(tmp_path)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_to_the_parent_ends_all(tmp_path: Path, number: signal.Signals) -> None:
    commands = {name: noting(tmp_path, name, WAIT) for name in ("a", "b")}
    code = f"import os; from memstate_pipeline.processes import run_together; run_together({commands!r}, os.environ)"
    parent = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + 30
        while not all((tmp_path / name).is_file() and (tmp_path / name).read_text() for name in commands):
            assert time.monotonic() < until
            time.sleep(0.05)
        parent.send_signal(number)
        assert parent.wait(30) != 0
    finally:
        parent.kill()
    assert gone(tmp_path)
