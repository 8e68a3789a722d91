"""Commands of memstate in this process, with an environment and output of their own.

Each opens the store from its files, as a process does, and costs a tenth of a second less, a night four tenths. What is
about processes (signals, kills, priority, limits of the system, first imports) is tested in those of `tests.warm`.
So are erasures, as their users start them: a process that has had what was erased is a harder case of its own.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

import pytest

from memstate_pipeline.cli.main import main


def run(arguments: Sequence[str], env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Runs `memstate` to its end, with nothing to read; what it wrote comes as text.

    Args:
        arguments: those of the command line.
        env: the whole environment.
    """
    with _streams() as streams, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["memstate", *arguments])
        patch.setattr(sys, "excepthook", sys.excepthook)  # typer sets its own
        patch.setattr(logging.root, "handlers", [])  # pytest has some, without which warnings go to stderr
        patch.setattr(os, "nice", lambda _: 0)  # a process cannot raise its priority again
        for name in os.environ.keys() - env.keys():
            patch.delenv(name)
        for name, value in env.items():
            patch.setenv(name, value)
        code = _exit_code()
    return subprocess.CompletedProcess(arguments, code, *streams)


def _exit_code() -> int:
    try:
        main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


@contextmanager
def _streams() -> Iterator[list[str]]:
    """Standard streams as a process has them, under their numbers, too; their text comes at the end."""
    written: list[str] = []
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", stack.enter_context(Path(os.devnull).open()))
        files = [_in_place_of(name, stack, patch) for name in ("stdout", "stderr")]
        yield written
        for file in files:
            file.flush()
            file.seek(0)
            written.append(file.read())


def _in_place_of(name: str, stack: ExitStack, patch: pytest.MonkeyPatch) -> IO[str]:
    file: IO[str] = stack.enter_context(tempfile.TemporaryFile("w+", encoding="utf-8", newline=""))  # noqa: SIM115
    number = {"stdout": 1, "stderr": 2}[name]
    before = os.dup(number)
    stack.callback(os.close, before)
    stack.callback(os.dup2, before, number)
    os.dup2(file.fileno(), number)
    patch.setattr(sys, name, file)
    return file
