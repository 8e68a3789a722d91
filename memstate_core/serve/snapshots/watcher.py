"""The thread that polls CURRENT and refreshes the served generation."""

from __future__ import annotations

import logging
import threading
from datetime import UTC, datetime

from memstate_core.model.errors import MemstateError
from memstate_core.serve.snapshots.readiness import Refused
from memstate_core.serve.snapshots.swap import Serving
from memstate_core.serve.telemetry.counters import Count, Counters

_log = logging.getLogger("memstate.serve")


class Watcher:
    """A thread that polls CURRENT.

    Attributes:
        refused: the snapshot that CURRENT names, if the last attempt to open it failed; None otherwise.
        has_polled: set when the first poll has ended.
    """

    def __init__(self, serving: Serving, seconds: float, counters: Counters | None = None) -> None:
        self._serving, self._seconds, self._counters = serving, seconds, counters or Counters()
        self.refused: Refused | None = None
        self.has_polled, self._ended = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="memstate-watcher", daemon=True)

    def start(self) -> None:
        """Starts polling; the first poll opens what is published."""
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread."""
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while True:
            self._poll()
            self.has_polled.set()
            if self._ended.wait(self._seconds):
                return

    def _poll(self) -> None:
        """Refreshes; on failure the old snapshot stays in service, and each cause is logged once."""
        try:
            self._serving.refresh()
            self.refused = None
        except Exception as error:  # noqa: BLE001 (a watcher that dies would serve one snapshot forever)
            detail = error.message if isinstance(error, MemstateError) else repr(error)
            if self.refused is None or detail != self.refused.detail:
                _log.error("cannot serve what CURRENT names: %s", detail)
                self._counters.add(Count.SWAPS_FAILED)
                self.refused = Refused(self._named(), detail, datetime.now(UTC))

    def _named(self) -> str:
        """The snapshots that CURRENT names, if it is readable."""
        try:
            return self._serving.named
        except (OSError, ValueError):
            return "unreadable"
