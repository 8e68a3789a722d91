"""The end of a night: its page where it failed, and the notification of it.

The command line and the sensors of Dagster both call this; a night is notified of once, by the one that sees its
end first.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from memstate_core.model.text import iso
from memstate_core.run.store import Store
from memstate_pipeline.notify.message import Night, Problem
from memstate_pipeline.notify.notifier import notify_of_night
from memstate_pipeline.partitions import PARTITION_TAG
from memstate_pipeline.report.failed_run import NO_NIGHT, RunFailure, report_failed
from memstate_pipeline.report.page import report_paths
from memstate_pipeline.resources import NOW_TAG, TRIAL_TAG

_VARIES = re.compile(r"[0-9a-f-]{8,}|[0-9][0-9.,:]*")
"""Ids and numbers: what differs between two messages of one fault."""
_UNTYPED = {"StepFailed", "RunFailed"}
"""Errors of many causes, which differ in their messages alone."""


def failed_night(
    store: Store, run_id: str, tags: Mapping[str, str], failure: RunFailure, at: datetime, now: datetime
) -> None:
    """Leaves the page of a night that failed, and notifies of it.

    Args:
        store: the store.
        run_id: the run.
        tags: its tags, which name its shard and its logical time.
        failure: why it failed.
        at: when it ended.
        now: the machine's time.
    """
    report_failed(store, run_id, tags, failure, at)
    if failure.type in NO_NIGHT or TRIAL_TAG in tags:
        return
    page, document = _report(store, run_id, tags[PARTITION_TAG])
    refusing = [check for check in _failed_checks(document) if str(check.get("severity")).upper() == "ERROR"]
    problems = (_error(failure, at), *(_check(check, at) for check in refusing))
    snapshot = document.get("previous_snapshot")
    notify_of_night(store, _night(run_id, tags, at, page, snapshot, problems, is_published=False), now)


def published_night(store: Store, run_id: str, tags: Mapping[str, str], at: datetime, now: datetime) -> None:
    """Notifies of a night that published, if it warns or ends a fault; the arguments are those of `failed_night`."""
    if TRIAL_TAG in tags:
        return
    page, document = _report(store, run_id, tags[PARTITION_TAG])
    if page is None:
        return
    warnings = [str(warning) for warning in document.get("warnings") or []]
    problems = (*(_check(check, at) for check in _failed_checks(document)), *(_warning(text, at) for text in warnings))
    notify_of_night(store, _night(run_id, tags, at, page, document.get("snapshot"), problems, is_published=True), now)


def _night(
    run_id: str,
    tags: Mapping[str, str],
    at: datetime,
    page: Path | None,
    snapshot: str | None,
    problems: tuple[Problem, ...],
    *,
    is_published: bool,
) -> Night:
    shown = None if page is None else str(page)
    shard, now = tags[PARTITION_TAG], tags.get(NOW_TAG)
    return Night(run_id, shard, iso(at), now, is_published, snapshot, shown, _distinct(problems))


def _report(store: Store, run_id: str, shard: str) -> tuple[Path | None, dict[str, Any]]:
    """The page of a run with its data; nothing where it has none."""
    page, data = report_paths(store.home.reports, run_id, shard)
    try:
        return page, dict(json.loads(data.read_text()))
    except (OSError, ValueError):
        return None, {}


def _failed_checks(document: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    return (check for check in document.get("checks") or [] if not check["passed"])


def _error(failure: RunFailure, at: datetime) -> Problem:
    which = f"/{_fingerprint(failure.message)}" if failure.type in _UNTYPED else ""
    return Problem(f"error/{failure.type}{which}", "error", failure.type, failure.message, iso(at))


def _check(check: Mapping[str, Any], at: datetime) -> Problem:
    detail = check.get("detail") or "the condition does not hold; the page and the Dagster UI have its rows"
    return Problem(f"check/{check['name']}", "check", str(check["name"]), str(detail), iso(at))


def _warning(message: str, at: datetime) -> Problem:
    return Problem(f"warning/{_fingerprint(message)}", "warning", None, message, iso(at))


def _fingerprint(message: str) -> str:
    """What stays of a message while its numbers and ids change."""
    return hashlib.sha256(_VARIES.sub("#", message).encode("utf-8", "backslashreplace")).hexdigest()[:16]


def _distinct(problems: tuple[Problem, ...]) -> tuple[Problem, ...]:
    return tuple({problem.key: problem for problem in problems}.values())
