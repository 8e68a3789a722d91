"""Python processes forked from one in which memstate and its libraries are loaded, so that none has to load them again.

Each is a process of its own, with arguments, environment, output and exit status; it saves the five to ten seconds for
Dagster, torch and matplotlib. What loading itself does is tested in fresh interpreters (`test_light_imports`). The fork
server is that of `multiprocessing`.
"""

from __future__ import annotations

import multiprocessing
import os
import runpy
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from multiprocessing import reduction
from pathlib import Path
from typing import IO, Any

_AS_IN_ENCODER = {"HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1", "TOKENIZERS_PARALLELISM": "false"}
"""What memstate sets before it loads the model: libraries read it when they are imported."""
_ONE_THREAD = {"OMP_NUM_THREADS": "1"}
"""Idle threads of torch wait actively, which costs CPU time where tests use all cores."""
_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["tests.preloaded"])


class Process:
    """A forked process, with the methods of `subprocess.Popen` that tests use.

    Args:
        arguments: as Python takes them, from `-m MODULE` or `-c CODE` on.
        env: its whole environment.
        stdout: where its output goes.
        stderr: where its errors go.
        stdin: what it reads; nothing unless given.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        env: Mapping[str, str],
        stdout: IO[bytes],
        stderr: IO[bytes],
        stdin: IO[bytes] | None = None,
    ) -> None:
        os.environ.update(_AS_IN_ENCODER | _ONE_THREAD)
        streams = {1: _Stream(stdout), 2: _Stream(stderr)} | ({} if stdin is None else {0: _Stream(stdin)})
        self._process = _FORKS.Process(target=_become, args=(list(arguments), dict(env), Path.cwd(), streams))
        self._process.start()

    @property
    def returncode(self) -> int | None:
        """Its exit status, or the negative number of the signal that ended it; None while it runs."""
        return self._process.exitcode

    @property
    def pid(self) -> int:
        """Its number."""
        assert self._process.pid is not None
        return self._process.pid

    def poll(self) -> int | None:
        """Its exit status, or None while it runs."""
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Its exit status, when it has ended."""
        self._process.join(timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired(str(self._process.pid), timeout or 0)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Signals it, unless it has ended."""
        if self.returncode is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Asks it to end."""
        self._process.terminate()

    def kill(self) -> None:
        """Ends it at once."""
        self._process.kill()


def run(arguments: Sequence[str], env: Mapping[str, str], timeout: float = 300) -> subprocess.CompletedProcess[str]:
    """Runs Python to its end; what it wrote comes as text."""
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        process = Process(arguments, env, stdout, stderr)
        try:
            code = process.wait(timeout)
        finally:
            process.kill()
        for stream in (stdout, stderr):
            stream.seek(0)
        return subprocess.CompletedProcess(arguments, code, stdout.read().decode(), stderr.read().decode())


class _Stream:
    """An open file, which arrives in another process as the number of a handle."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def __reduce__(self) -> tuple[Any, ...]:
        return _handle, (reduction.DupFd(self._file.fileno()),)


def _handle(given: Any) -> int:
    handle: int = given.detach()
    return handle


def _become(arguments: list[str], env: dict[str, str], folder: Path, streams: dict[int, int]) -> None:
    """Runs a module or code as the main program, as the interpreter does."""
    for number, stream in streams.items():
        os.dup2(stream, number)
        os.close(stream)
    if 0 in streams:
        sys.stdin = open(0, closefd=False)  # noqa: SIM115 - multiprocessing put another in its place
    os.environ.clear()
    os.environ.update(env)
    os.chdir(folder)
    warnings.filterwarnings("error", category=DeprecationWarning, module="memstate")
    kind, what, *sys.argv[1:] = arguments
    if kind == "-m":
        runpy.run_module(what, run_name="__main__", alter_sys=True)
    else:
        exec(compile(what, "<string>", "exec"), {"__name__": "__main__"})
