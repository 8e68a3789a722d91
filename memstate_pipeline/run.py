"""Running the nightly job in this process, as the UI runs it in one of its own."""

from __future__ import annotations

import json
import os
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import dagster as dg

from memstate_core.model.errors import EvidenceSetAside, MemstateError, ShardsFailed, StoreLocked
from memstate_core.model.scope import Layout
from memstate_core.model.text import iso
from memstate_core.night.gates.acceptance import Acceptance
from memstate_core.run.store import Store, open_store
from memstate_core.state.read_once import files_read_once
from memstate_core.state.snapshots import combined_state_hash
from memstate_pipeline.dead_runs import end_dead_runs
from memstate_pipeline.definitions import build_defs
from memstate_pipeline.erasure import holding
from memstate_pipeline.failures import failure
from memstate_pipeline.gates import acceptance_tags
from memstate_pipeline.instance import dagster_instance
from memstate_pipeline.nights import MAX_RETRIES_TAG, MAX_RUNTIME_TAG, NIGHTLY
from memstate_pipeline.notify.nights import failed_night, published_night
from memstate_pipeline.partitions import PARTITION_TAG
from memstate_pipeline.report.failed_run import RunFailure
from memstate_pipeline.report.page import TABLES, report_paths
from memstate_pipeline.resources import NOW_TAG, PLAN_TAG, TRIAL_TAG
from memstate_pipeline.run_origin import recorded_origin
from memstate_pipeline.run_output import output_not_captured

_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


@dataclass(frozen=True)
class Maintained:
    """The result of a maintenance of all shards.

    Attributes:
        summary: the JSON of `memstate maintain`, all shards together.
        pages: the report page of each shard.
    """

    summary: dict[str, Any]
    pages: tuple[Path, ...]


@files_read_once()
def maintain(
    store: Store,
    now: datetime | None = None,
    *,
    plan: Path | None = None,
    given: Acceptance | None = None,
    on_clone: bool = False,
) -> Maintained:
    """Runs the nightly job for one shard after another; a shard whose run fails keeps no other from its night.

    Args:
        store: the store.
        now: the logical time; None for the time at which each run begins.
        plan: the file of a plan that the runs are held to.
        given: the gates that a person accepts in these runs.
        on_clone: the store is a clone, so keep the runs out of Dagster's history, and let gates warn only.

    Raises:
        StoreLocked: another run holds the store.
        PlanInvalid: the file is not a plan, or was changed; nothing was imported or published.
        PlanStale: the store has changed since the plan, or a shard's run decided otherwise; the shard's
            served snapshot stays.
        CheckRefused: a blocking check failed; the shard's served snapshot stays.
        GateRefused: a gate failed and is not accepted; the shard's served snapshot stays.
        StepFailed: a step failed; the shard's served snapshot stays.
        ShardsFailed: runs of a store with several shards failed, without a plan; the others published.
        KeyboardInterrupt: the run was interrupted; the shard's served snapshot stays.
    """
    if store.home.begun_reshard.exists():
        with holding(store, f"process {os.getpid()} (memstate maintain)"):
            pass  # completes it, so that the job has the partitions of the shards that are served
    job = _nightly(store.home.root, open_store(store.home.root).settings.model_dump_json(), store.layout)
    tags = ({} if now is None else {NOW_TAG: iso(now)}) | ({} if plan is None else {PLAN_TAG: str(plan.absolute())})
    tags |= (
        {MAX_RUNTIME_TAG: "0", MAX_RETRIES_TAG: "0"}
        | acceptance_tags(given)
        | ({TRIAL_TAG: "clone"} if on_clone else {})
    )
    paths: list[tuple[Path, Path]] = []
    failed: dict[str, MemstateError] = {}
    with dg.DagsterInstance.ephemeral() if on_clone else dagster_instance(store.home) as instance:
        if not on_clone:
            end_dead_runs(store, instance, datetime.now(UTC))
        for shard in store.shards:
            try:
                with recorded_origin(instance), output_not_captured(instance):
                    run_id = _run_shard(store, job, shard, instance, tags)
                paths.append(report_paths(store.home.reports, run_id, shard))
            except StoreLocked:
                raise
            except MemstateError as error:
                if plan is not None or len(store.shards) == 1:
                    raise
                failed[shard] = error
    summaries = [_without_tables(json.loads(data.read_text())) for _, data in paths]
    if failed:
        raise ShardsFailed(failed, [summary["snapshot"] for summary in summaries]) from next(iter(failed.values()))
    return Maintained(_together(summaries), tuple(page for page, _ in paths))


@lru_cache(maxsize=2)
def _nightly(root: Path, settings: str, layout: Layout) -> dg.JobDefinition:
    """The job of a home: made once in a process for as long as its settings (as JSON) and shards stay the same."""
    del settings, layout
    return build_defs(root).resolve_job_def(NIGHTLY)


def _run_shard(
    store: Store, job: dg.JobDefinition, shard: str, instance: dg.DagsterInstance, tags: dict[str, str]
) -> str:
    """The id of the run that published a shard, without evidence that broke a step, unless it follows a plan."""
    named = {**tags, PARTITION_TAG: shard}
    while True:
        run_id = str(uuid.uuid4())
        try:
            job.execute_in_process(
                partition_key=shard, instance=instance, run_config=_QUIET, tags=tags, raise_on_error=True, run_id=run_id
            )
        except dg.DagsterExecutionInterruptedError as error:
            raise KeyboardInterrupt from error
        except BaseException as error:
            explained = failure(store, shard, error)
            if isinstance(explained, EvidenceSetAside) and PLAN_TAG not in tags:
                continue  # the run begins again, without that evidence
            ended = datetime.now(UTC)
            failed_night(store, run_id, named, RunFailure.of(explained), ended, ended)
            if not isinstance(error, Exception):
                raise
            raise explained from error
        ended = datetime.now(UTC)
        published_night(store, run_id, named, ended, ended)
        return run_id


def _without_tables(document: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name not in TABLES}


def _together(summaries: list[dict[str, Any]]) -> dict[str, Any]:
    """One summary for all shards: numbers are added, and a check passes if it passes in every shard."""
    if len(summaries) == 1:
        return summaries[0]
    first = summaries[0]
    added = {part: _added([s[part] for s in summaries]) for part in ("counts", "seconds", "totals", "extractor")}
    checks = [
        _worst([c for s in summaries for c in s["checks"] if c["name"] == one["name"]]) for one in first["checks"]
    ]
    hashes = {summary["shard"]: summary["state_hash"] for summary in summaries}
    return {
        **first,
        **added,
        "run_id": ",".join(summary["run_id"] for summary in summaries),
        "expected_false_merges": round(sum(summary["expected_false_merges"] or 0 for summary in summaries), 2),
        "calibration": _calibrated(summaries),
        "snapshot": ",".join(summary["snapshot"] for summary in summaries),
        "state_hash": combined_state_hash(hashes),
        "checks": checks,
        "shards": summaries,
    }


def _worst(verdicts: list[dict[str, Any]]) -> dict[str, Any]:
    """The first failure of a check over shards, else its first verdict."""
    return next((verdict for verdict in verdicts if not verdict["passed"]), verdicts[0])


def _calibrated(summaries: list[dict[str, Any]]) -> list[dict[str, float]]:
    rows = [row for summary in summaries for row in summary["calibration"]]
    edges = sorted({row["probability_from"] for row in rows}, reverse=True)
    return [
        _added([row for row in rows if row["probability_from"] == edge]) | {"probability_from": edge} for edge in edges
    ]


def _added(parts: list[dict[str, float]]) -> dict[str, float]:
    names = dict.fromkeys(name for part in parts for name in part)
    return {name: round(sum(part.get(name, 0) for part in parts), 3) for name in names}
