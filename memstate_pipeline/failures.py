"""Why a run failed: our own error, found in the chain of causes that Dagster leaves."""

from __future__ import annotations

from contextlib import suppress

import dagster as dg

from memstate_core.model.errors import CheckRefused, GateRefused, MemstateError, StagingMissing, StepFailed
from memstate_core.night.gates.verdict import GATES
from memstate_core.run.run import Run
from memstate_core.run.store import Store
from memstate_core.state.current import current_snapshot
from memstate_pipeline.causes import causes
from memstate_pipeline.instance import history_lost
from memstate_pipeline.report.format import is_refusing

CHECK_FAILED = "DagsterAssetCheckFailedError"
"""The error of a blocking check, which Dagster does not export."""


def failure(store: Store, shard: str, run_id: str, error: BaseException) -> MemstateError:
    """Our error from the chain of causes, else the refusal of a check, else the first cause outside Dagster.

    Args:
        store: the store.
        shard: the shard of the run.
        run_id: the run's name in the ledger.
        error: what Dagster raised.
    """
    chain = list(causes(error))
    for cause in chain:
        if isinstance(cause, MemstateError):
            return cause
    by_check = any(type(cause).__name__ == CHECK_FAILED for cause in chain)
    if by_check and (refused := refusal(store, shard)) is not None:
        return refused
    if (lost := history_lost(error)) is not None:
        return lost
    root = next((cause for cause in reversed(chain) if not isinstance(cause, dg.DagsterError)), chain[-1])
    problem = f"{type(root).__name__}: {root}".splitlines()[0]
    return StepFailed(shard, problem, _published(store, shard, run_id))


def _published(store: Store, shard: str, run_id: str) -> str | None:
    """The snapshot that a run has published; None if it has not."""
    with suppress(MemstateError, OSError):
        served = current_snapshot(store.home, shard)
        if served is not None and served.manifest.run_id == run_id:
            return served.name
    return None


def refusal(store: Store, shard: str) -> MemstateError | None:
    """The refusal of a shard's last run by its checks; the correctness conditions come first."""
    try:
        verdicts = Run.load(store.home.work(shard)).checks()
    except StagingMissing:
        return None
    failed = [check for check in verdicts if not check["passed"] and is_refusing(check)]
    conditions = [check["name"] for check in failed if check["name"] not in GATES]
    if conditions:
        return CheckRefused(conditions)
    kept = ("name", "found", "expected", "look_at")
    return GateRefused(shard, [{key: check[key] for key in kept} for check in failed]) if failed else None
