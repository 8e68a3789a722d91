"""The page of a run that failed: what it had done, why it ended, and what is still served."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from memstate_core.ingest.unforeseen import is_unforeseen
from memstate_core.model.errors import (
    EvidenceSetAside,
    MemstateError,
    PlanInvalid,
    PlanStale,
    StagingMissing,
    StoreLocked,
)
from memstate_core.run.run import Run
from memstate_core.run.store import Store
from memstate_core.state.current import named_number
from memstate_pipeline.partitions import PARTITION_TAG
from memstate_pipeline.report.collect import collect_failed
from memstate_pipeline.report.index import write_index
from memstate_pipeline.report.page import report_paths, write_report
from memstate_pipeline.report.run_report import is_published
from memstate_pipeline.resources import NOW_TAG

NO_NIGHT = {error.__name__ for error in (EvidenceSetAside, PlanInvalid, PlanStale, StoreLocked)}
"""Errors that leave no page: the night begins again, does not begin, or a plan is refused and the store stays."""


class RunFailure(NamedTuple):
    """Why a run failed: the class of the error, and its message."""

    type: str
    message: str

    @classmethod
    def of(cls, error: MemstateError) -> RunFailure:
        """The failure with one of our own errors."""
        return cls(type(error).__name__, error.message)


def report_failed(store: Store, run_id: str, tags: Mapping[str, str], failure: RunFailure, at: datetime) -> Path | None:
    """Writes the page of a failed run, unless it has one or its failure is that of no night.

    Args:
        store: the store.
        run_id: the run.
        tags: its tags, which name its shard and its logical time.
        failure: why it failed.
        at: when it ended, by the machine's clock; pages are ordered by that.

    Returns:
        The page, if it was written. A run that had published has the report of one that did.
    """
    shard = tags[PARTITION_TAG]
    if failure.type in NO_NIGHT or report_paths(store.home.reports, run_id, shard)[0].exists():
        return None
    run = _scratch(store, shard, run_id)
    if run is not None and is_published(store, run):
        return None
    known = {
        "run_id": run_id,
        "shard": shard,
        "now": tags.get(NOW_TAG),
        "snapshot": None,
        "previous_snapshot": _served(store, shard),
        "error": failure._asdict(),
        "warnings": [failure.message],
    }
    try:
        data = collect_failed(store, shard, run, known)
    except BaseException as error:
        if not is_unforeseen(error):
            raise
        data = collect_failed(store, shard, None, known)  # what the run left is damaged
    page = write_report(store.home.reports, data)[0]
    os.utime(page, (at.timestamp(), at.timestamp()))
    write_index(store.home.reports)
    return page


def _scratch(store: Store, shard: str, run_id: str) -> Run | None:
    """What the run left in its scratch folder; None if it had not begun there."""
    try:
        run = Run.load(store.home.work(shard))
    except (StagingMissing, OSError, ValueError):
        return None
    return run if run.facts.run_id == run_id else None


def _served(store: Store, shard: str) -> str | None:
    try:
        number = named_number(store.home, shard)
    except MemstateError:
        return None
    return None if number is None else f"{shard}/{number}"
