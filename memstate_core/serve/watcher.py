"""The thread that looks at CURRENT from time to time and has serving follow it."""

from __future__ import annotations

import logging
import threading

from memstate_core.model.errors import MemstateError
from memstate_core.serve.serving import Serving

_log = logging.getLogger("memstate.serve")


class Watcher:
    """A thread that looks at CURRENT from time to time."""

    def __init__(self, serving: Serving, seconds: float) -> None:
        self._serving, self._seconds = serving, seconds
        self._ended = threading.Event()
        self._told = ""
        self._thread = threading.Thread(target=self._run, name="memstate-watcher", daemon=True)

    def start(self) -> None:
        """Opens what is published, and goes on looking."""
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread."""
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while True:
            self._look()
            if self._ended.wait(self._seconds):
                return

    def _look(self) -> None:
        """Whatever is wrong with a new snapshot, the old one goes on serving; said once, tried again each time."""
        try:
            self._serving.refresh()
            self._told = ""
        except Exception as error:  # noqa: BLE001 (a watcher that dies would serve one snapshot for ever)
            said = error.message if isinstance(error, MemstateError) else repr(error)
            if said != self._told:
                _log.error("cannot serve what CURRENT names: %s", said)
            self._told = said
