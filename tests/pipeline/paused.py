"""Processes that the system pauses at a step of their work, as a machine that is suspended, and that go on later."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests import warm
from tests.pipeline.conftest import clean_environment
from tests.pipeline.engines import wait_until

_PAUSE_AT = """
import os, signal, sys
from operator import attrgetter
import {module} as module

*outer, name = {name!r}.split(".")
owner = attrgetter(".".join(outer))(module) if outer else module
real, calls = getattr(owner, name), []

def pause(*arguments, **named):
    calls.append(1)
    if len(calls) == {call}:
        os.kill(os.getpid(), signal.SIGSTOP)
    return real(*arguments, **named)

setattr(owner, name, pause)
"""
COMMAND = """
sys.argv[0] = "memstate"
from memstate_pipeline.cli.main import main
main()
"""
NIGHT_OF_A_SHARD = """
from pathlib import Path
from memstate_core.model.errors import MemstateError
from memstate_pipeline.run import night_of
try:
    night_of(Path(sys.argv[1]), {"memstate/now": sys.argv[3]}, sys.argv[2])
except MemstateError as error:
    print(type(error).__name__)
    sys.exit(error.exit_code)
"""


class Paused:
    """A process, paused with all its threads.

    Args:
        process: the process.
        output: the file with what it writes.
    """

    def __init__(self, process: warm.Process, output: Path) -> None:
        self._process, self._output = process, output

    def go_on(self) -> tuple[int, str]:
        """Its exit code and what it wrote, when it has ended."""
        self._process.send_signal(signal.SIGCONT)
        return self._process.wait(300), self._output.read_text()


@contextmanager
def paused(
    point: tuple[str, str, int], program: str, arguments: list[str], given: Mapping[str, str], output: Path
) -> Iterator[Paused]:
    """Starts a process, and waits until it is paused.

    Args:
        point: the module and the function before whose call of this number it pauses.
        program: `COMMAND` or `NIGHT_OF_A_SHARD`.
        arguments: those of the program.
        given: variables.
        output: a file for what it writes.
    """
    module, name, call = point
    script = _PAUSE_AT.format(module=module, name=name, call=call) + program
    with output.open("wb") as file:
        process = warm.Process(["-c", script, *arguments], clean_environment(**given), file, file)

    def is_paused() -> bool:
        assert process.poll() is None, output.read_text()
        return Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"

    try:
        wait_until(is_paused)
        yield Paused(process, output)
    finally:
        process.kill()
