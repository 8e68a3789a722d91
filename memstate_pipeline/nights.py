"""Nights among the runs of Dagster, and the last one of each shard."""

from __future__ import annotations

from collections.abc import Sequence

import dagster as dg

from memstate_pipeline.partitions import PARTITION_TAG

NIGHTLY = "nightly_maintenance"
"""The nightly job."""

CHOOSE = "choose_shards"
"""The job that chooses the shards which have a night (`choose_shards`)."""

IMPORT_INBOX = "import_inbox"
"""The job that imports the inbox between nights, or beside them."""

ASSET_JOB = "__ASSET_JOB"
"""Dagster's own job, which *Materialize* on the pages of assets runs."""

WHOLE_RUN = {"dagster/retry_strategy": "ALL_STEPS"}
"""Run tag: what repeats the run repeats all of it, since a killed step may have left the working copy half written."""

MAX_RUNTIME_TAG = "dagster/max_runtime"
"""Run tag: the seconds after which Dagster's daemon ends the run; 0 for never."""

MAX_RETRIES_TAG = "dagster/max_retries"
"""Run tag: how often Dagster's daemon repeats the run if its process dies."""

REFUSED_PLAN_TAG = "memstate/refused_plan"
"""Run tag: the run ended since the plan that it was held to does not fit the store, so it was no night."""

_LATEST = 50
"""Runs of a shard among which its last night is looked for; others are single assets that somebody materialized."""


def is_night(run: dg.DagsterRun) -> bool:
    """Whether a run is a night: the nightly job, or one from the pages of the assets that begins with the evidence.

    A run whose plan was refused is none.
    """
    from_assets = run.job_name == ASSET_JOB and dg.AssetKey("evidence") in (
        run.asset_selection or [dg.AssetKey("evidence")]
    )
    return (run.job_name == NIGHTLY or from_assets) and REFUSED_PLAN_TAG not in run.tags


def last_night(
    instance: dg.DagsterInstance, shard: str, statuses: Sequence[dg.DagsterRunStatus] = ()
) -> dg.DagsterRun | None:
    """The newest night of a shard that is on record, in one of these statuses or in any; None without one."""
    runs = instance.get_runs(dg.RunsFilter(tags={PARTITION_TAG: shard}, statuses=statuses), limit=_LATEST)
    return next((run for run in runs if is_night(run)), None)
