"""Python processes forked from one in which third-party libraries are loaded, so that none has to load them again.

Each is a process of its own, with arguments, environment, streams and exit status, and it loads memstate itself: only
the five to ten seconds for Dagster, torch and matplotlib are saved. The process that forks has done nothing but
imports, so no work is under way in it whose locks a fork would leave closed. Elsewhere than on Linux, where libraries
of the system do not bear a fork, plain processes are started.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, NoReturn

LIBRARIES = (
    "alembic.command", "dagster", "dagster._core.executor.in_process", "dagster._core.storage.base_storage",
    "dagster._core.storage.local_compute_log_manager", "deltalake", "fastapi", "jinja2", "kuzu",
    "matplotlib.backends.backend_svg", "matplotlib.figure", "mcp.server", "msgspec", "numpy", "polars", "polars_hash",
    "pyarrow.compute", "pyarrow.parquet", "scipy.cluster.hierarchy", "scipy.sparse.csgraph", "sentence_transformers",
    "sklearn.feature_extraction.text", "sklearn.linear_model", "sqlalchemy.dialects.sqlite", "torch",
    "transformers.models.bert.modeling_bert", "typer.rich_utils", "upath", "uvicorn",
)  # fmt: skip
OPTIONS = ("-W", "error::DeprecationWarning:memstate")
AS_IN_ENCODER = {"HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1", "TOKENIZERS_PARALLELISM": "false"}
"""What memstate sets before it loads the model: libraries read it when they are imported."""
MOST_BYTES = 1 << 17
"""Of an order: the arguments, the environment and the folder of a process."""


class Process:
    """A forked process, with what tests ask of `subprocess.Popen`.

    Attributes:
        pid: its number.
        returncode: its exit status, or the negative number of the signal that ended it; None until that was asked for.
    """

    def __init__(self, arguments: Sequence[str], env: Mapping[str, str], stdout: IO[bytes], stderr: IO[bytes]) -> None:
        told, tell = os.pipe()
        order = json.dumps({"arguments": list(arguments), "env": dict(env), "folder": str(Path.cwd())}).encode()
        with Path(os.devnull).open("rb") as nothing, os.fdopen(tell, "wb"):
            socket.send_fds(_forks(), [order], [nothing.fileno(), stdout.fileno(), stderr.fileno(), tell])
        self._told = os.fdopen(told)
        self.pid = int(self._told.readline())
        self.returncode: int | None = None

    def poll(self, timeout: float | None = 0) -> int | None:
        """Its exit status, if it ended within so many seconds."""
        if self.returncode is None and select.select([self._told], [], [], timeout)[0]:
            with self._told:
                self.returncode = os.waitstatus_to_exitcode(int(self._told.read()))
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Its exit status, when it has ended."""
        status = self.poll(timeout)
        if status is None:
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
        return status

    def send_signal(self, number: int) -> None:
        """Signals it, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Asks it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Ends it at once."""
        self.send_signal(signal.SIGKILL)


Started = Process | subprocess.Popen[bytes]


def begin(arguments: Sequence[str], env: Mapping[str, str], stdout: IO[bytes], stderr: IO[bytes]) -> Started:
    """Starts Python with arguments that begin with `-m MODULE` or `-c CODE`."""
    if sys.platform == "linux":
        return Process(arguments, env, stdout, stderr)
    return subprocess.Popen([sys.executable, *OPTIONS, *arguments], env=env, stdout=stdout, stderr=stderr)


def run(arguments: Sequence[str], env: Mapping[str, str], timeout: float = 300) -> subprocess.CompletedProcess[str]:
    """Runs Python to its end; what it wrote comes as text."""
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        process = begin(arguments, env, stdout, stderr)
        try:
            code = process.wait(timeout)
        finally:
            process.kill()
        for stream in (stdout, stderr):
            stream.seek(0)
        return subprocess.CompletedProcess(arguments, code, stdout.read().decode(), stderr.read().decode())


@functools.cache
def _forks() -> socket.socket:
    """Where orders for processes go; the process that takes them ends with this one."""
    orders, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        handle = theirs.fileno()
        command = [sys.executable, *OPTIONS, "-m", "tests.warm", str(handle)]
        server = subprocess.Popen(command, pass_fds=[handle], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)

    def end() -> None:
        orders.close()
        server.wait()

    atexit.register(end)
    return orders


def hurry_run_history() -> None:
    """Lets SQLite, in which only Dagster keeps its history, not wait for the disk: that guards against a loss of power.

    What a process wrote before it was killed stays, and memstate's own files are written as ever.
    """
    from sqlalchemy import event
    from sqlalchemy.engine import Engine

    event.listen(Engine, "connect", lambda connection, _: connection.execute("PRAGMA synchronous = OFF"))


# --- in the process that forks


def _serve(orders: socket.socket) -> NoReturn:
    """Forks for every order, until nobody can give one."""
    os.environ |= AS_IN_ENCODER
    for name in LIBRARIES:
        with contextlib.suppress(ImportError):  # an extra that is not installed
            importlib.import_module(name)
    hurry_run_history()
    gc.collect()
    gc.freeze()
    while True:
        order, handles, _, _ = socket.recv_fds(orders, MOST_BYTES, 4)
        if not order:
            _reap()
            sys.exit()
        if _fork() == 0:
            orders.close()
            _become(order, handles)
        for handle in handles:
            os.close(handle)
        _reap()


def _fork() -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # allocators and OpenBLAS have threads; they bear a fork
        return os.fork()


def _reap() -> None:
    """Takes leave of those that waited for a process which has ended."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return


def _become(order: bytes, handles: list[int]) -> NoReturn:
    """Forks the process that was asked for; tells its number and, in the end, its status."""
    *streams, tell = handles
    process = _fork()
    if process:
        for stream in streams:
            os.close(stream)
        os.write(tell, f"{process}\n".encode())
        os.write(tell, str(os.waitpid(process, 0)[1]).encode())
        os._exit(0)
    os.close(tell)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    given = json.loads(order)
    os.environ.clear()
    os.environ.update(given["env"])
    os.chdir(given["folder"])
    kind, what, *arguments = given["arguments"]
    sys.argv = [kind, *arguments]
    sys.path[0] = "" if kind == "-c" else given["folder"]
    _end_with(_status_of(kind, what))


def _status_of(kind: str, what: str) -> int:
    """Runs a module or code as the main program, as the interpreter does."""
    try:
        if kind == "-m":
            runpy.run_module(what, run_name="__main__", alter_sys=True)
        else:
            exec(compile(what, "<string>", "exec"), {"__name__": "__main__"})
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    except BaseException:  # noqa: BLE001
        traceback.print_exc()
        return 1
    return 0


def _end_with(status: int) -> NoReturn:
    """Ends as the interpreter does, but leaves all libraries to the system: to clear them takes half a second."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
