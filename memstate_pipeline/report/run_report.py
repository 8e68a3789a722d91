"""The report of a run that has published: complete, or its numbers alone.

Invariant: what was published stays published. If anything in the state makes the complete report fail, a report without
titles, tables and explanations is written in its place, with the reason among its warnings.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from memstate_core.night.unforeseen import described, is_unforeseen
from memstate_core.run.run import Run
from memstate_core.run.store import Store
from memstate_pipeline.report.collect import collect, collect_numbers
from memstate_pipeline.report.page import write_report


class RunReport(NamedTuple):
    """The files of a report, and why it is incomplete, if it is."""

    page: Path
    data: Path
    problem: str | None


def report_run(store: Store, run: Run) -> RunReport:
    """Writes the report of a run that has just published."""
    folder = store.home.reports
    try:
        return RunReport(*write_report(folder, collect(store, run)), None)
    except BaseException as error:
        if not is_unforeseen(error):
            raise
        problem = described(error)
    return RunReport(*write_report(folder, collect_numbers(store, run, problem)), problem)
