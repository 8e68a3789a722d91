"""A process beside this one that is asked, and answers, by pickles.

It is a fresh interpreter that imports what it works with by name: it shares no thread and no lock with this process, as
a fork would, and never runs the program that started it again, as a process that `multiprocessing` spawns may.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

Opened = Callable[[], AbstractContextManager[Callable[[Any], Any]]]
"""Opens, in the process, the function that answers; it closes when the process is asked no more."""

_SERVE = "from memstate_core.state.process.fresh_process import serve; serve()"


class FreshProcess:
    """A process that calls a function for each item that it is sent; the first thing to send is an `Opened`."""

    def __init__(self) -> None:
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(path or str(Path.cwd()) for path in sys.path)}
        command = [sys.executable, "-P", "-c", _SERVE]  # it imports from where this process does, and nowhere else
        self._process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._asked, self._answers = self._process.stdin, self._process.stdout

    def fileno(self) -> int:
        """A file descriptor that can be read when an answer, or its end, is there."""
        return self._answers.fileno()

    def ask(self, item: object) -> None:
        """Sends an item; waits while the process reads no more than a pipe holds.

        Raises:
            OSError: the process ended.
        """
        pickle.dump(item, self._asked, pickle.HIGHEST_PROTOCOL)
        self._asked.flush()

    def answer(self) -> Any:
        """Waits for the next answer.

        Raises:
            EOFError, pickle.UnpicklingError: the process ended.
        """
        return pickle.load(self._answers)

    def close(self) -> int:
        """Ends it once it has answered; its exit code, which is negative if a signal ended it."""
        with suppress(OSError):  # what was not sent is not sent any more
            self._asked.close()
        code = self._process.wait()
        self._answers.close()
        return code

    def kill(self) -> None:
        """Ends it at once; `close` it then."""
        self._process.kill()

    def terminate(self) -> None:
        """Asks it to end; `close` it then."""
        self._process.terminate()


def serve() -> None:
    """What the process does, until its input ends."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print does not get among the answers
    items = _items()
    if (opened := next(items, None)) is None:
        return
    with opened() as work:
        for item in items:
            pickle.dump(work(item), answers, pickle.HIGHEST_PROTOCOL)
            answers.flush()


def _items() -> Iterator[Any]:
    with suppress(EOFError, KeyboardInterrupt):
        while True:
            yield pickle.load(sys.stdin.buffer)
