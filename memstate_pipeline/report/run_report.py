"""The report of a run that has published: complete, or its numbers alone.

Invariants: what was published stays published, and no report keeps a later run from its night. If anything in the
state makes the complete report fail, a report without titles, tables and explanations is written in its place, with the
reason among its warnings; if it kills the process, the next run does so.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import polars as pl

from memstate_core.ingest import unreported
from memstate_core.ingest.unforeseen import described, is_unforeseen
from memstate_core.model.errors import MemstateError
from memstate_core.run.run import Run
from memstate_core.run.store import Store
from memstate_core.state.fold.decisions import PUBLISHED
from memstate_pipeline.report.collect import collect, collect_numbers
from memstate_pipeline.report.page import ReportData, write_report

COMPLETE, NUMBERS = "maintenance_report", "maintenance_report of numbers"
"""The marks under which a run writes its report, so that the next one sees in which its process died."""
_DIED = "the process of the run died while it wrote the complete report"
_LATE = "the process of this run died after it had published; a later run wrote this report"


class RunReport(NamedTuple):
    """The files of a report, and why it is incomplete, if it is."""

    page: Path
    data: Path
    problem: str | None


def report_run(store: Store, run: Run, *warnings: str) -> RunReport | None:
    """Writes the report of a run that has published, and ends the run.

    Args:
        store: the store.
        run: the run.
        warnings: more warnings for the report.

    Returns:
        The report; None if an earlier attempt at its numbers killed the process, so that none is written.
    """
    report = None if run.entered == NUMBERS else _written(store, run, warnings)
    unreported.remove(store.home.imports, run.imported()["covers"])
    run.end()
    return report


def report_interrupted(store: Store, shard: str) -> str | None:
    """Writes the report of a run that published and whose process died before it had reported; never fails on it.

    The caller holds the store's lock. Nothing happens if the last run of the shard ended or has not published, or if
    its scratch folder is damaged.

    Returns:
        What became of the report, in a sentence; None if there is nothing to report.
    """
    run = _published_run(store, shard)
    if run is None:
        return None
    which = f"run {run.facts.run_id} published {shard}/{run.facts.number} and died before it had reported"
    try:
        report = report_run(store, run, _LATE)
    except BaseException as error:
        if not _is_of_the_report(error):
            raise
        run.end()
        return f"{which}; its report cannot be written: {described(error)}"
    if report is None:
        return f"{which}; no report of it is written, since two attempts killed their processes"
    return f"{which}; its report is {report.page}" + (f", incomplete: {report.problem}" if report.problem else "")


def _written(store: Store, run: Run, warnings: tuple[str, ...]) -> RunReport:
    folder, problem = store.home.reports, _DIED if run.entered == COMPLETE else None
    if problem is None:
        run.enter(COMPLETE)
        try:
            return RunReport(*write_report(folder, _with_warnings(collect(store, run), warnings)), None)
        except BaseException as error:
            if not is_unforeseen(error):
                run.leave()
                raise
            problem = described(error)
    run.enter(NUMBERS)
    numbers = _with_warnings(collect_numbers(store, run, problem), warnings)
    return RunReport(*write_report(folder, numbers), problem)


def _with_warnings(data: ReportData, warnings: tuple[str, ...]) -> ReportData:
    return replace(data, summary=data.summary | {"warnings": [*data.summary["warnings"], *warnings]})


def _published_run(store: Store, shard: str) -> Run | None:
    """The last nightly run of a shard, if it published and has not ended."""
    try:
        run = Run.load(store.home.work(shard))
        return run if run.imported() and is_published(store, run) else None
    except BaseException as error:
        if not _is_of_the_report(error):
            raise
        return None


def _is_of_the_report(error: BaseException) -> bool:
    """Whether an error may come from what the run left, and not from the system or an interruption."""
    return is_unforeseen(error) or isinstance(error, MemstateError)


def is_published(store: Store, run: Run) -> bool:
    """Whether the ledger records a snapshot of this run."""
    own = (pl.col("kind") == PUBLISHED) & (pl.col("shard") == run.facts.shard) & (pl.col("run_id") == run.facts.run_id)
    return store.ledger.scan("transitions").filter(own).head(1).collect().height > 0
