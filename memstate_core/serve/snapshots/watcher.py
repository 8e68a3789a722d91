"""The thread that looks at CURRENT from time to time and has serving follow it."""

from __future__ import annotations

import logging
import threading
from datetime import UTC, datetime

from memstate_core.model.errors import MemstateError
from memstate_core.serve.snapshots.readiness import Refused
from memstate_core.serve.snapshots.swap import Serving
from memstate_core.serve.telemetry.counters import Count, Tally

_log = logging.getLogger("memstate.serve")


class Watcher:
    """A thread that looks at CURRENT from time to time.

    Attributes:
        refused: what CURRENT names and could not be opened at the last look; None if it could.
    """

    def __init__(self, serving: Serving, seconds: float, tally: Tally | None = None) -> None:
        self._serving, self._seconds, self._tally = serving, seconds, tally or Tally()
        self.refused: Refused | None = None
        self._ended = threading.Event()
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
            self.refused = None
        except Exception as error:  # noqa: BLE001 (a watcher that dies would serve one snapshot for ever)
            said = error.message if isinstance(error, MemstateError) else repr(error)
            if self.refused is None or said != self.refused.detail:
                _log.error("cannot serve what CURRENT names: %s", said)
                self._tally.add(Count.SWAPS_FAILED)
                self.refused = Refused(self._named(), said, datetime.now(UTC))

    def _named(self) -> str:
        """What CURRENT names, as far as that can be read."""
        try:
            return self._serving.named
        except (OSError, ValueError):
            return "unreadable"
