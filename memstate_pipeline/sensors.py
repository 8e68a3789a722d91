"""Sensors: imports dumps as they arrive, runs a night again that set evidence aside, ends runs whose process died.

Two see the end of nights that other processes ran: one leaves pages of those that failed, and both notify.
"""

from collections.abc import Iterator
from datetime import UTC, datetime

import dagster as dg
from msgspec import json as msgjson

from memstate_core.ingest.inbox import waiting
from memstate_core.ingest.unfinished import state_of
from memstate_core.model import errors
from memstate_core.model.errors import EvidenceSetAside
from memstate_core.model.ids import sha256_text
from memstate_core.run.store import Store
from memstate_pipeline.dead_runs import Seen, end_dead_runs
from memstate_pipeline.failures import CHECK_FAILED, refusal
from memstate_pipeline.following import follow
from memstate_pipeline.nights import IMPORT_INBOX, is_night
from memstate_pipeline.notify.nights import failed_night, published_night
from memstate_pipeline.partitions import PARTITION_TAG
from memstate_pipeline.report.failed_run import RunFailure
from memstate_pipeline.resources import ACCEPT_TAG, BY_TAG, NOW_TAG, PLAN_TAG, WHY_TAG


def inbox_sensor(store: Store) -> dg.SensorDefinition:
    """Requests one import for each new set of complete files, known by name, size and modification time."""

    @dg.sensor(job_name=IMPORT_INBOX, minimum_interval_seconds=30, default_status=dg.DefaultSensorStatus.RUNNING)
    def inbox() -> dg.RunRequest | dg.SkipReason:
        files, unfinished = waiting(store.home, store.settings)
        if not files:
            being_written = ", ".join(path.name for path in unfinished)
            return dg.SkipReason(
                f"being written: {being_written}" if unfinished else f"{store.home.inbox} holds no dumps"
            )
        return dg.RunRequest(run_key=sha256_text(repr([(path.name, state_of(path)) for path in files])))

    return inbox


def set_aside_sensor(nightly: "dg.UnresolvedAssetJobDefinition") -> dg.SensorDefinition:
    """Requests a run in place of one that ended because it set evidence aside; the new run leaves that evidence out.

    Each such run sets at least one row aside, so this ends.
    """

    @dg.run_failure_sensor(
        request_job=nightly,
        minimum_interval_seconds=30,
        default_status=dg.DefaultSensorStatus.RUNNING,
    )
    def set_aside(context: dg.RunFailureSensorContext) -> dg.RunRequest | dg.SkipReason:
        failed = context.dagster_run
        if not is_night(failed):
            return dg.SkipReason(f"run {failed.run_id} is no night")
        causes = [name for event in context.get_step_failure_events() for name, _ in _causes(event)]
        if EvidenceSetAside.__name__ not in causes or PLAN_TAG in failed.tags:
            return dg.SkipReason(
                f"run {failed.run_id} failed for another reason: {', '.join(causes) or 'no step failed'}"
            )
        tags = {name: failed.tags[name] for name in (NOW_TAG, ACCEPT_TAG, WHY_TAG, BY_TAG) if name in failed.tags}
        shard = failed.tags[PARTITION_TAG]
        return dg.RunRequest(run_key=f"without/{failed.run_id}", partition_key=shard, tags=tags)

    return set_aside


def failures_sensor(store: Store) -> dg.SensorDefinition:
    """Leaves a page of each night that failed, and notifies of it; the command line does so itself."""

    @dg.run_failure_sensor(
        name="failed_nights",
        minimum_interval_seconds=30,
        default_status=dg.DefaultSensorStatus.RUNNING,
    )
    def failed_nights(context: dg.RunFailureSensorContext) -> None:
        run = context.dagster_run
        if not is_night(run):
            return
        events = context.get_step_failure_events()
        named = [failure for event in events if (failure := _failure(event)) is not None]
        failure = named[0] if named else RunFailure("RunFailed", context.failure_event.message or "the run failed")
        if failure.type == CHECK_FAILED and (refused := refusal(store, run.tags[PARTITION_TAG])) is not None:
            failure = RunFailure.of(refused)
        now = datetime.now(UTC)
        failed_night(store, run.run_id, run.tags, failure, _ended(context, now), now)

    return failed_nights


def published_sensor(store: Store) -> dg.SensorDefinition:
    """Notifies of nights that published with warnings, or that end a fault; the command line does so itself."""

    @dg.run_status_sensor(
        name="published_nights",
        run_status=dg.DagsterRunStatus.SUCCESS,
        minimum_interval_seconds=30,
        default_status=dg.DefaultSensorStatus.RUNNING,
    )
    def published_nights(context: dg.RunStatusSensorContext) -> None:
        run, now = context.dagster_run, datetime.now(UTC)
        if is_night(run):
            follow(store, context.instance)  # its page may come from a worker
            published_night(store, run.run_id, run.tags, _ended(context, now), now)

    return published_nights


def dead_runs_sensor(store: Store) -> dg.SensorDefinition:
    """Marks runs as failed whose process is gone, so that they keep no other run waiting.

    The cursor is the last event of each run that is running, and when it was first found to be the last.
    """

    @dg.sensor(name="dead_runs", minimum_interval_seconds=30, default_status=dg.DefaultSensorStatus.RUNNING)
    def dead_runs(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        seen = msgjson.decode(context.cursor or "{}", type=Seen)
        ended = end_dead_runs(store, context.instance, datetime.now(UTC), seen)
        context.update_cursor(msgjson.encode(seen).decode())
        return dg.SkipReason(f"marked as failed: {', '.join(ended)}" if ended else "every running run is alive")

    return dead_runs


def _ended(context: dg.RunStatusSensorContext, now: datetime) -> datetime:
    """When the run of a sensor ended; now, if that is not recorded."""
    record = context.instance.get_run_record_by_id(context.dagster_run.run_id)
    return datetime.fromtimestamp(record.end_time, UTC) if record is not None and record.end_time else now


def _causes(event: dg.DagsterEvent) -> Iterator[tuple[str, str]]:
    """The classes and messages of the errors of a failed step, from the outermost to the first cause."""
    error = event.step_failure_data.error
    while error is not None:
        if error.cls_name is not None:
            yield error.cls_name, error.message.partition(": ")[2].strip() or error.message.strip()
        error = error.cause


def _failure(event: dg.DagsterEvent) -> RunFailure | None:
    """Our own error among the causes of a failed step, else the first cause; None if it has none."""
    causes = list(_causes(event))
    own = [cause for cause in causes if cause[0] in errors.__all__]
    return RunFailure(*(own or causes[::-1])[0]) if causes else None
