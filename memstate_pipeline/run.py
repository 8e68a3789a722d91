"""Running the nightly job in this process, as the UI runs it in one of its own."""

from __future__ import annotations

import json
import logging
import os
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import dagster as dg

from memstate_core.model.errors import (
    EvidenceSetAside,
    MemstateError,
    PlanInvalid,
    PlanStale,
    ShardsFailed,
    StoreLocked,
)
from memstate_core.model.scope import Layout
from memstate_core.model.text import iso
from memstate_core.night.gates.acceptance import Acceptance
from memstate_core.run.store import Store, open_store
from memstate_core.state.ledger.read_once import files_read_once
from memstate_core.state.snapshots import Snapshot
from memstate_pipeline.choose_shards import choose
from memstate_pipeline.dead_runs import end_dead_runs
from memstate_pipeline.definitions import build_defs
from memstate_pipeline.failures import failure
from memstate_pipeline.gates import acceptance_tags
from memstate_pipeline.inputs import take_in
from memstate_pipeline.instance import dagster_instance
from memstate_pipeline.nights import MAX_RETRIES_TAG, MAX_RUNTIME_TAG, NIGHTLY, REFUSED_PLAN_TAG
from memstate_pipeline.notify.nights import failed_night, published_night
from memstate_pipeline.partitions import PARTITION_TAG
from memstate_pipeline.publication import publish_unchanged
from memstate_pipeline.report.failed_run import RunFailure
from memstate_pipeline.report.page import report_paths
from memstate_pipeline.resources import NOW_TAG, PLAN_TAG, TRIAL_TAG
from memstate_pipeline.run_origin import recorded_origin
from memstate_pipeline.run_output import output_not_captured
from memstate_pipeline.shard_processes import in_processes
from memstate_pipeline.summaries import summary_of_run, together
from memstate_pipeline.writers import holding

_log = logging.getLogger("memstate.nights")
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
    """Runs the nightly job of each shard; a shard whose run fails keeps no other from its night.

    So many run at once as the settings say (`store.nights_at_once`), unless there is a plan or the store is a clone.
    Shards that the settings allow to skip have none (`choose_shards`), unless there is a plan or the store is a clone.

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
        StepFailed: a step failed; the shard's served snapshot stays, unless the error names the one that was published.
        ShardsFailed: runs of a store with several shards failed, without a plan; the others published.
        KeyboardInterrupt: the run was interrupted; the shard's served snapshot stays.
    """
    if store.home.begun_reshard.exists():
        with holding(store, f"process {os.getpid()} (memstate maintain)"):
            pass  # completes it, so that the job has the partitions of the shards that are served
    job = _nightly(store.home.root, open_store(store.home.root).settings.model_dump_json(), store.layout)
    tags = _tags(now, plan, given, on_clone)
    paths: list[tuple[Path, Path]] = []
    failed: dict[str, MemstateError] = {}
    with dg.DagsterInstance.ephemeral() if on_clone else dagster_instance(store.home) as instance:
        if not on_clone:
            end_dead_runs(store, instance, datetime.now(UTC))
        may_skip = plan is None and not on_clone and store.settings.schedule.skip_unchanged_days > 0
        skipped = _skipped(store, instance, now or datetime.now(UTC), tags) if may_skip else ()
        at_once = 1 if plan is not None or on_clone else store.settings.store.nights_at_once
        for shard, result in _results(store, job, instance, tags, _others(store, skipped), at_once):
            if isinstance(result, str):
                paths.append(report_paths(store.home.reports, result, shard))
            elif plan is not None or len(store.shards) == 1 or (at_once == 1 and isinstance(result, StoreLocked)):
                raise result
            else:
                failed[shard] = result
    summaries = [summary_of_run(json.loads(data.read_text())) for _, data in paths]
    if failed:
        raise ShardsFailed(failed, [summary["snapshot"] for summary in summaries]) from next(iter(failed.values()))
    return Maintained(together(summaries, skipped, store.shards), tuple(page for page, _ in paths))


def _tags(now: datetime | None, plan: Path | None, given: Acceptance | None, on_clone: bool) -> dict[str, str]:
    """The tags of the runs: no daemon ends them or runs them again."""
    return {
        **({} if now is None else {NOW_TAG: iso(now)}),
        **({} if plan is None else {PLAN_TAG: str(plan.absolute())}),
        MAX_RUNTIME_TAG: "0",
        MAX_RETRIES_TAG: "0",
        **acceptance_tags(given),
        **({TRIAL_TAG: "clone"} if on_clone else {}),
    }


def night_of(root: Path, tags: dict[str, str], shard: str) -> str:
    """Runs the nightly job of a shard, in a process that has nothing else to do (`shard_processes`).

    Args:
        root: the home.
        tags: the tags of the run.
        shard: which shard.

    Returns:
        The id of the run that published.

    Raises:
        MemstateError: as for `maintain`.
    """
    store = open_store(root)
    job = _nightly(root, store.settings.model_dump_json(), store.layout)
    with dagster_instance(store.home) as instance:
        return _recorded(store, job, shard, instance, tags)


def _results(
    store: Store,
    job: dg.JobDefinition,
    instance: dg.DagsterInstance,
    tags: dict[str, str],
    shards: Sequence[str],
    at_once: int,
) -> Iterator[tuple[str, str | MemstateError]]:
    """Each shard with the id of the run that published it, or why it failed, as they end."""
    if at_once > 1 and len(shards) > 1:
        yield from in_processes(partial(night_of, store.home.root, tags), shards, at_once)
        return
    for shard in shards:
        try:
            yield shard, _recorded(store, job, shard, instance, tags)
        except MemstateError as error:
            yield shard, error


def _recorded(
    store: Store, job: dg.JobDefinition, shard: str, instance: dg.DagsterInstance, tags: dict[str, str]
) -> str:
    with recorded_origin(instance), output_not_captured(instance):
        return _run_shard(store, job, shard, instance, tags)


def _skipped(store: Store, instance: dg.DagsterInstance, now: datetime, tags: dict[str, str]) -> tuple[Snapshot, ...]:
    """What shards without a night serve on; none if that cannot be decided, so that every night says what is wrong."""
    with holding(store, f"process {os.getpid()} (memstate maintain)"):
        try:
            for problem in take_in(store, f"inputs-{uuid.uuid4()}", now, tags).problems:
                _log.error(problem)
            skipped = choose(store, instance, now).skipped
            for problem in publish_unchanged(store, skipped, tags):
                _log.error(problem)
            return skipped
        except Exception as error:  # noqa: BLE001 (whatever it is, the nights are more important)
            _log.warning("every shard has a night, since none could be skipped: %s", error)
            return ()


def _others(store: Store, skipped: tuple[Snapshot, ...]) -> list[str]:
    without = {snapshot.manifest.shard for snapshot in skipped}
    return [shard for shard in store.shards if shard not in without]


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
            explained = failure(store, shard, run_id, error)
            if isinstance(explained, EvidenceSetAside) and PLAN_TAG not in tags:
                continue  # the run begins again, without that evidence
            if isinstance(explained, PlanInvalid | PlanStale):
                instance.add_run_tags(run_id, {REFUSED_PLAN_TAG: type(explained).__name__})
            ended = datetime.now(UTC)
            failed_night(store, run_id, named, RunFailure.of(explained), ended, ended)
            if not isinstance(error, Exception):
                raise
            raise explained from error
        ended = datetime.now(UTC)
        published_night(store, run_id, named, ended, ended)
        return run_id
