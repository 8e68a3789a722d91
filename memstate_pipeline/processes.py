"""Processes that belong together: they start together, and when one ends, the others are ended."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from types import FrameType
from typing import NamedTuple

GRACE_SECONDS = 20.0
"""How long a process may take to end before it is killed."""
_POLL_SECONDS = 0.5


class Ended(NamedTuple):
    """The process that ended first, and its exit code (negative: the signal that killed it)."""

    name: str
    code: int


def run_together(commands: Mapping[str, Sequence[str]], environment: Mapping[str, str]) -> Ended:
    """Runs processes until one of them ends; none is left when this returns or raises.

    SIGTERM and SIGHUP end them, too. In a terminal, Ctrl-C reaches all of them. What they print goes to stderr.

    Args:
        commands: the command of each process, by name.
        environment: the variables of all of them.

    Raises:
        SystemExit: a signal asked this process to end.
    """
    with _ends_on_signals(), ExitStack() as started:
        running = {name: started.enter_context(_running(command, environment)) for name, command in commands.items()}
        while True:
            for name, process in running.items():
                with suppress(subprocess.TimeoutExpired):
                    return Ended(name, process.wait(_POLL_SECONDS))


@contextmanager
def _running(command: Sequence[str], environment: Mapping[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(command, env=environment, stdout=sys.stderr)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def _ends_on_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP end the block like an interruption, so that what it started is ended."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, _: FrameType | None) -> None:
        sys.exit(128 + number)

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
