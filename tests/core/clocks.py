"""Clocks for tests."""

from __future__ import annotations

import time

from memstate_core.ingest.unfinished import WallClock

SETTLED = WallClock(lambda: time.time() + 60)
"""A minute ahead, so that a file which was just written counts as complete."""
