"""Runs several workers on one listening socket, replaces those that die, and stops them all.

A worker is a whole server. One that has the fewest connections accepts the next; all map the same snapshot files, so
their pages are in memory once. The supervisor answers nothing itself.

Invariant: no worker outlives the supervisor, whatever ends it.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import socket
import tempfile
import threading
import time
from multiprocessing import connection
from multiprocessing.context import SpawnProcess
from pathlib import Path

from memstate_core.run.store import Store, open_store
from memstate_core.serve.options import Options
from memstate_core.serve.telemetry.log import log_as_json
from memstate_core.serve.workers.shared import Shared

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
"""Seconds before a worker is replaced: doubled for each that dies young, so that a lasting fault costs little."""

YOUNG_SECONDS = 10.0
"""A worker that ran for less died young."""

METRICS_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
"""Where the metrics library keeps the values of all processes, read when it is imported."""

_POLL_SECONDS = 0.5
_log = logging.getLogger("memstate.serve")


class Supervisor:
    """The parent of some workers.

    Args:
        store: the store.
        listening: the socket on which all accept connections.
        options: the options of each.
        count: how many there are.
    """

    def __init__(self, store: Store, listening: socket.socket, options: Options, count: int) -> None:
        self._root, self._listening, self._options, self._count = store.home.root, listening, options, count
        self._ended = False
        self._workers: dict[int, SpawnProcess] = {}
        self._begun: dict[int, float] = {}
        self._pauses = dict.fromkeys(range(count), FIRST_PAUSE)
        self._due = dict.fromkeys(range(count), 0.0)

    def run(self) -> None:
        """Runs until SIGTERM or SIGINT; then every worker finishes its requests and completes its journals."""
        log_as_json(self._options.api_key)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._end)
        with tempfile.TemporaryDirectory(prefix="memstate-workers-") as folder:
            os.environ[METRICS_VARIABLE] = folder
            while not self._ended:
                self._replace(Path(folder))
                connection.wait([worker.sentinel for worker in self._workers.values()], _POLL_SECONDS)
                self._bury(Path(folder))
            self._stop()

    def _end(self, *_: object) -> None:
        self._ended = True

    def _replace(self, folder: Path) -> None:
        """Starts the workers that are missing and due."""
        now = time.monotonic()
        for number in self._due.keys() - self._workers.keys():
            if now >= self._due[number]:
                given = (self._root, self._listening, self._options, Shared(folder, number))
                worker = multiprocessing.get_context("spawn").Process(
                    target=work, args=given, name=f"memstate-worker-{number}"
                )
                worker.start()
                self._workers[number], self._begun[number] = worker, now

    def _bury(self, folder: Path) -> None:
        """Removes the workers that have ended, leaves no connection to them, and decides when successors start."""
        for number, worker in list(self._workers.items()):
            if worker.is_alive():
                continue
            del self._workers[number]
            Shared(folder, number).connections().end()
            is_young = time.monotonic() - self._begun[number] < YOUNG_SECONDS
            self._pauses[number] = min(LONGEST_PAUSE, 2 * self._pauses[number]) if is_young else FIRST_PAUSE
            self._due[number] = time.monotonic() + self._pauses[number]
            if not self._ended:
                facts = {"worker": number, "exit_code": worker.exitcode, "restart_seconds": self._pauses[number]}
                _log.error("a worker ended; another takes its place", extra={"facts": facts})

    def _stop(self) -> None:
        """Asks every worker to end, and kills those that do not in time."""
        for worker in self._workers.values():
            worker.terminate()
        ends = time.monotonic() + self._options.shutdown_seconds + _POLL_SECONDS
        for worker in self._workers.values():
            worker.join(max(0.0, ends - time.monotonic()))
            if worker.is_alive():
                worker.kill()
                worker.join()


def work(root: Path, listening: socket.socket, options: Options, shared: Shared) -> None:
    """One worker, until it is asked to end or the supervisor is gone."""
    from memstate_core.serve import server

    threading.Thread(target=_end_with_parent, name="memstate-parent", daemon=True).start()
    server.run(open_store(root), listening, options, shared)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)
