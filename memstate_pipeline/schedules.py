"""Schedules: the nightly run, at 02:00 UTC unless the settings say otherwise; on by default."""

from collections.abc import Iterator

import dagster as dg

from memstate_core.run.store import Store
from memstate_pipeline.jobs import NIGHTLY
from memstate_pipeline.resources import NOW_TAG


def nightly_schedule(store: Store) -> dg.ScheduleDefinition:
    """Requests one run for each shard; the tick's own time is the run's logical time."""

    @dg.schedule(
        job_name=NIGHTLY,
        cron_schedule=store.settings.schedule.cron,
        execution_timezone="UTC",
        default_status=dg.DefaultScheduleStatus.RUNNING,
    )
    def nightly(context: dg.ScheduleEvaluationContext) -> Iterator[dg.RunRequest]:
        at = context.scheduled_execution_time.isoformat()
        for shard in store.shards:
            yield dg.RunRequest(run_key=f"{at}/{shard}", partition_key=shard, tags={NOW_TAG: at})

    return nightly
