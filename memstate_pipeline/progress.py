"""Progress of the nightly run: each step reports its start, and long phases inside it are logged in the Dagster UI."""

import functools
import time
from collections.abc import Callable
from typing import Any

from memstate_core.model.progress import Progress, progress_to, report_progress

STEPS = "steps"
"""The unit of a report that a step of the nightly run starts; the phase is its name."""

EVERY_S = 10.0
"""Seconds between two log lines about progress; phases that end sooner are not logged."""


class ProgressLog:
    """A listener that logs progress now and then, with the rate and the time left."""

    def __init__(self, log: Callable[[str], object], clock: Callable[[], float] = time.monotonic) -> None:
        self._log, self._clock = log, clock
        self._began: dict[str, float] = {}
        self._logged = clock()

    def __call__(self, progress: Progress) -> None:
        """Takes a report."""
        now = self._clock()
        if progress.done == 0:
            self._began[progress.phase] = now
        began = self._began.setdefault(progress.phase, now)
        if now - max(self._logged, began) >= EVERY_S:
            self._logged = now
            self._log(described(progress, now - began))


def described(progress: Progress, seconds: float) -> str:
    """A line such as `encode: 2,048 of 9,752 texts, 38 a second, 3 min 23 s left`."""
    line = f"{progress.phase}: {progress.done:,} of {progress.total:,} {progress.unit}"
    if not progress.done or seconds <= 0:
        return line
    rate = progress.done / seconds
    return f"{line}, {_number(rate)} a second, {_duration((progress.total - progress.done) / rate)} left"


def reports_progress(step: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates the function of an asset: reports its start, and logs the progress of its phases."""

    @functools.wraps(step)
    def reporting(context: Any, *args: Any, **kwargs: Any) -> Any:
        report_progress(Progress(context.asset_key.path[-1], 0, 1, STEPS))
        with progress_to(ProgressLog(context.log.info)):
            return step(context, *args, **kwargs)

    return reporting


def _number(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 10 else f"{rate:.1f}"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
