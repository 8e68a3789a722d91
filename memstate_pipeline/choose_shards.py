"""Choosing the shards that have a night, before any of them begins (`schedule.skip_unchanged_days`).

Where the setting is on, the schedule requests the job `choose_shards`, and sensors request the nights that it found
due. It takes in all input first, since only the ledger says which shards that concerns. If it fails, every shard has
a night.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

import dagster as dg

from memstate_core.night.nights_due import NightsDue, nights_due
from memstate_core.retrieve.evaluation.recorded_questions import expire_questions
from memstate_core.run.store import Store
from memstate_core.state.snapshots import Snapshot
from memstate_pipeline.assets.common import WRITER_POOL
from memstate_pipeline.assets.ingest import logical_now
from memstate_pipeline.imports import report_import
from memstate_pipeline.inputs import take_in
from memstate_pipeline.jobs import limit
from memstate_pipeline.nights import CHOOSE, last_night
from memstate_pipeline.publication import publish_unchanged
from memstate_pipeline.resources import NOW_TAG, StoreResource

SKIPPED_TAG = "memstate/skipped"
"""Run tag of the job, set when it has decided: the shards without a night, separated by commas."""

_FAILED = (dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED)


def choose(store: Store, instance: dg.DagsterInstance, now: datetime) -> NightsDue:
    """Decides which shards have a night; the caller holds the store's lock and has taken in all input.

    A shard whose last night failed has one, so that what was said of the failure ends.

    Args:
        store: the store, whose settings allow nights to be skipped.
        instance: the record of its nights.
        now: the logical time of the nights.

    Raises:
        LedgerDamaged: the ledger lacks something, or holds other bytes than were written.
    """
    expire_questions(store.home.recorded_questions, store.settings.recall, now)  # as each night that publishes does
    found = nights_due(store, now)
    failed = {each.manifest.shard: "its last night failed" for each in found.skipped if _has_failed(instance, each)}
    kept = tuple(each for each in found.skipped if each.manifest.shard not in failed)
    return replace(found, due=found.due | failed, skipped=kept)


def _has_failed(instance: dg.DagsterInstance, served: Snapshot) -> bool:
    last = last_night(instance, served.manifest.shard)
    return last is not None and last.status in _FAILED


@dg.op(pool=WRITER_POOL)
def choose_due_shards(context: dg.OpExecutionContext, store: StoreResource) -> None:
    """Imports the inbox and the accesses, and says in a tag of the run which shards have no night.

    What those serve is published for replicas where an earlier attempt failed, or the URL is another one.
    """
    opened, now = store.store, logical_now(context)
    taken = take_in(opened, context.run_id, now, context.run.tags)
    for problem in taken.problems:
        context.log.error(problem)
    report_import(context, opened, taken.imported)
    found = choose(opened, context.instance, now)
    store.commit()
    for problem in publish_unchanged(opened, found.skipped, context.run.tags):
        context.log.error(problem)
    skipped = ",".join(each.manifest.shard for each in found.skipped)
    context.log.info(f"no night: {skipped or 'none'}; nights: {found.due}")
    context.instance.add_run_tags(context.run_id, {SKIPPED_TAG: skipped})


def choose_job(store: Store) -> dg.JobDefinition:
    """The choice as a job of its own."""

    @dg.job(name=CHOOSE, executor_def=dg.in_process_executor, tags=limit(store))
    def choose_shards() -> None:
        """Import the inbox and choose the shards that have a night; sensors request their nights."""
        choose_due_shards()

    return choose_shards


def choice_sensors(
    store: Store, nightly: "dg.UnresolvedAssetJobDefinition", choosing: dg.JobDefinition
) -> list[dg.SensorDefinition]:
    """Request the nights that were found due, and those of all shards if that could not be decided."""

    @dg.run_status_sensor(
        name="chosen_nights",
        run_status=dg.DagsterRunStatus.SUCCESS,
        monitored_jobs=[choosing],
        request_job=nightly,
        minimum_interval_seconds=30,
        default_status=dg.DefaultSensorStatus.RUNNING,
    )
    def chosen_nights(context: dg.RunStatusSensorContext) -> Iterator[dg.RunRequest | dg.SkipReason]:
        yield from _requests(store, context.dagster_run)

    @dg.run_failure_sensor(
        name="nights_without_choice",
        monitored_jobs=[choosing],
        request_job=nightly,
        minimum_interval_seconds=30,
        default_status=dg.DefaultSensorStatus.RUNNING,
    )
    def nights_without_choice(context: dg.RunFailureSensorContext) -> Iterator[dg.RunRequest | dg.SkipReason]:
        yield from _requests(store, context.dagster_run)

    return [chosen_nights, nights_without_choice]


def _requests(store: Store, chosen: dg.DagsterRun) -> Iterator[dg.RunRequest | dg.SkipReason]:
    """The nights after a run of the job: of all shards but those in its tag."""
    skipped = chosen.tags.get(SKIPPED_TAG, "").split(",")
    tags = {name: chosen.tags[name] for name in (NOW_TAG,) if name in chosen.tags}
    due = [shard for shard in store.shards if shard not in skipped]
    for shard in due:
        yield dg.RunRequest(run_key=f"{chosen.run_id}/{shard}", partition_key=shard, tags=tags)
    if not due:
        yield dg.SkipReason("no shard has a change")
