"""Progress on a terminal: a line for the command or its nightly steps, and one for the phase that is in progress."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, TextIO

from memstate_core.model.progress import Progress, progress_to
from memstate_pipeline.cli.shared.terminal import visible

if TYPE_CHECKING:
    from rich.progress import Progress as Display
    from rich.progress import Task, TaskID


_IS_SHOWN: ContextVar[bool] = ContextVar("is_progress_shown", default=False)


@contextmanager
def live_progress(steps: int = 0, doing: str = "") -> Iterator[None]:
    """Shows the progress of the block on stderr, on a terminal only; a block within another goes on in its display.

    Args:
        steps: steps of nightly runs in the block.
        doing: what the block does, shown with the time that it takes, for one without such steps.
    """
    if _IS_SHOWN.get() or not sys.stderr.isatty():
        yield
        return
    token = _IS_SHOWN.set(True)
    try:
        with _displayed(steps, doing):
            yield
    finally:
        _IS_SHOWN.reset(token)


@contextmanager
def _displayed(steps: int, doing: str) -> Iterator[None]:
    # Dagster points the descriptor of stderr at a file while a step runs, so the display has its own.
    with (
        os.fdopen(os.dup(sys.stderr.fileno()), "w") as terminal,
        _display(terminal) as display,
        progress_to(LiveProgress(display, steps, doing)),
    ):
        yield


class LiveProgress:
    """A listener that shows progress in a display."""

    def __init__(self, display: Display, steps: int, doing: str = "") -> None:
        self._display = display
        self._steps = display.add_task("starting", total=steps, unit="steps") if steps else None
        if doing:
            display.add_task(doing, total=None, unit="")
        self._begun = 0
        self._phase = ""
        self._task: TaskID | None = None

    def __call__(self, progress: Progress) -> None:
        """Takes a report."""
        from memstate_pipeline.progress import STEPS

        if progress.unit == STEPS:
            self._start_step(progress.phase)
        elif progress.total:  # a phase without anything to do is over at once
            self._show_phase(progress)

    def _start_step(self, name: str) -> None:
        self._end_phase()
        if self._steps is not None:
            self._display.update(self._steps, completed=self._begun, description=name, refresh=True)
            self._begun += 1

    def _show_phase(self, progress: Progress) -> None:
        if self._task is None or progress.phase != self._phase:
            self._end_phase()
            name = visible(progress.phase).replace("\n", "\\n")
            self._task = self._display.add_task(name, total=progress.total, unit=progress.unit)
            self._phase = progress.phase
        self._display.update(self._task, completed=progress.done, total=progress.total)

    def _end_phase(self) -> None:
        if self._task is not None:
            self._display.remove_task(self._task)
        self._task = None


def _display(terminal: TextIO) -> Display:
    from rich.console import Console
    from rich.progress import BarColumn, ProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Display
    from rich.text import Text

    class Amount(ProgressColumn):
        """What is done, of how much, and how much a second."""

        def render(self, task: Task) -> Text:
            return Text(_amount(task))

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        Amount(),
        TimeElapsedColumn(),
        TimeRemainingColumn(compact=True),
    )
    shares = sys.stdout.isatty()  # elsewhere, what is written to stdout must not go to the terminal
    return Display(*columns, console=Console(file=terminal), transient=True, redirect_stdout=shares)


def _amount(task: Task) -> str:
    unit, speed, total = task.fields["unit"], task.speed, task.total or 0
    if not unit:
        return ""
    if unit == "bytes":
        rate = f", {speed / 1e6:,.1f} a second" if speed else ""
        return f"{task.completed / 1e6:,.1f} of {total / 1e6:,.1f} MB{rate}"
    rate = f", {speed:,.1f} a second" if speed and unit != "steps" else ""
    return f"{task.completed:,.0f} of {total:,.0f} {unit}{rate}"
