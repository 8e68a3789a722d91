"""Why a run failed: our own error, found in the chain of causes that Dagster leaves."""

from __future__ import annotations

from collections.abc import Iterator

import dagster as dg

from memstate_core.model.errors import CheckRefused, MemstateError, StagingMissing, StepFailed
from memstate_core.run.run import Run
from memstate_core.run.store import Store


def failure(store: Store, shard: str, error: BaseException) -> MemstateError:
    """Our error from the chain of causes, else the refusal of a check, else the first cause outside Dagster."""
    causes = list(_chain(error))
    for cause in causes:
        if isinstance(cause, MemstateError):
            return cause
    try:
        failed = [check["name"] for check in Run.load(store.home.work(shard)).checks() if not check["passed"]]
    except StagingMissing:
        failed = []
    root = next((cause for cause in reversed(causes) if not isinstance(cause, dg.DagsterError)), causes[-1])
    problem = f"{type(root).__name__}: {root}".splitlines()[0]
    return CheckRefused(failed) if failed else StepFailed(shard, problem)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An exception and its causes, down to the first."""
    cause: BaseException | None = error
    seen: set[int] = set()
    while cause is not None and id(cause) not in seen:  # a chain may lead back into itself
        yield cause
        seen.add(id(cause))
        cause = cause.__cause__ or cause.__context__
