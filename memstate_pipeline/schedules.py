"""Schedules: the nightly run, by default at 02:00 UTC, and the weekly verification; on unless stopped in the UI."""

from collections.abc import Iterator
from datetime import UTC

import dagster as dg

from memstate_core.run.store import Store
from memstate_pipeline.jobs import NIGHTLY, VERIFY_STORE
from memstate_pipeline.resources import NOW_TAG


def nightly_schedule(store: Store) -> dg.ScheduleDefinition:
    """Requests one run per shard, with the time of the tick as logical time."""

    @dg.schedule(
        job_name=NIGHTLY,
        cron_schedule=store.settings.schedule.cron,
        execution_timezone=store.settings.schedule.time_zone,
        default_status=dg.DefaultScheduleStatus.RUNNING,
    )
    def nightly(context: dg.ScheduleEvaluationContext) -> Iterator[dg.RunRequest]:
        at = context.scheduled_execution_time.astimezone(UTC).isoformat()
        for shard in store.shards:
            yield dg.RunRequest(run_key=f"{at}/{shard}", partition_key=shard, tags={NOW_TAG: at})

    return nightly


def verify_schedules(store: Store) -> list[dg.ScheduleDefinition]:
    """Requests a verification of the store; no schedule if the setting is empty."""
    settings = store.settings.schedule
    if not settings.verify_cron:
        return []
    return [
        dg.ScheduleDefinition(
            name="weekly_verify",
            job_name=VERIFY_STORE,
            cron_schedule=settings.verify_cron,
            execution_timezone=settings.time_zone,
            default_status=dg.DefaultScheduleStatus.RUNNING,
        )
    ]
