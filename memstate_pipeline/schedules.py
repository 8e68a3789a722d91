"""Schedules: nights, the weekly verification, monthly retention and compaction; on unless stopped in the UI."""

from collections.abc import Iterator
from datetime import UTC

import dagster as dg

from memstate_core.model.errors import ShardRetired
from memstate_core.run.store import Store
from memstate_pipeline.jobs import COMPACTION, RETENTION, VERIFY_STORE
from memstate_pipeline.nights import CHOOSE, NIGHTLY
from memstate_pipeline.resources import NOW_TAG


def nightly_schedule(store: Store) -> dg.ScheduleDefinition:
    """Requests one run per shard, with the time of the tick as logical time.

    Where the settings allow nights to be skipped, it requests the job that chooses the shards (`choose_shards`).

    A tick fails after the number of shards was changed, until the definitions are loaded again.
    """
    partitions, chooses = store.shards, store.settings.schedule.skip_unchanged_days > 0

    @dg.schedule(
        job_name=CHOOSE if chooses else NIGHTLY,
        cron_schedule=store.settings.schedule.cron,
        execution_timezone=store.settings.schedule.time_zone,
        default_status=dg.DefaultScheduleStatus.RUNNING,
    )
    def nightly(context: dg.ScheduleEvaluationContext) -> Iterator[dg.RunRequest]:
        at = context.scheduled_execution_time.astimezone(UTC).isoformat()
        if partitions != store.shards:
            raise ShardRetired(partitions[0], store.shards)
        if chooses:
            yield dg.RunRequest(run_key=at, tags={NOW_TAG: at})
            return
        for shard in partitions:
            yield dg.RunRequest(run_key=f"{at}/{shard}", partition_key=shard, tags={NOW_TAG: at})

    return nightly


def further_schedules(store: Store) -> list[dg.ScheduleDefinition]:
    """Requests a verification of the store, retention and compaction; one whose setting is empty is left out."""
    settings = store.settings.schedule
    wanted = (
        ("weekly_verify", VERIFY_STORE, settings.verify_cron),
        ("retention", RETENTION, settings.retention_cron),
        ("compaction", COMPACTION, settings.compaction_cron),
    )
    return [
        dg.ScheduleDefinition(
            name=name,
            job_name=job,
            cron_schedule=cron,
            execution_timezone=settings.time_zone,
            default_status=dg.DefaultScheduleStatus.RUNNING,
        )
        for name, job, cron in wanted
        if cron
    ]
