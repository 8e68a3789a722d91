"""The examinations of `memstate doctor` that ask Dagster: the last nights, the queue, and the daemon.

Like every command that starts something, they end runs whose process is gone.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta

import dagster as dg

from memstate_core.model.errors import DiskFull, HistoryUnreachable, HistoryUnreadable
from memstate_core.night.erasure.run_database import SETTINGS_NAME
from memstate_core.run.store import Store
from memstate_pipeline.dead_runs import end_dead_runs
from memstate_pipeline.doctor.finding import Finding
from memstate_pipeline.instance import DAGSTER_VARIABLE, dagster_instance
from memstate_pipeline.nights import last_night

BEATING = timedelta(minutes=2)
"""A daemon whose last heartbeat is older is not running; it beats every half minute."""
PATIENCE = timedelta(hours=1)
"""A run that is queued for longer, while none is in progress, is stuck."""
_AT_WORK = [dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING]


def run_findings(store: Store, now: datetime) -> list[Finding]:
    """Examines the runs of a store; a history that cannot be read is a finding, too."""
    if os.environ.get(DAGSTER_VARIABLE, str(store.home.dagster)) != str(store.home.dagster):
        return [Finding("runs", True, f"not examined: their history is in ${DAGSTER_VARIABLE}, which stores may share")]
    if not (store.home.dagster / SETTINGS_NAME).exists():
        return [Finding("runs", True, "none yet")]
    if not os.access(store.home.root, os.W_OK):
        return [Finding("runs", True, "not examined, since the home cannot be written")]
    try:
        with dagster_instance(store.home) as instance:
            ended = end_dead_runs(store, instance, now)
            return [_last_runs(store, instance, ended), _queue(instance, now)]
    except (HistoryUnreachable, HistoryUnreadable, DiskFull) as error:
        return [Finding("runs", False, error.message)]
    except PermissionError as error:
        return [
            Finding("runs", False, f"{error.filename}: {error.strerror}, so no night begins; check the permissions")
        ]
    except Exception as error:  # noqa: BLE001 (of SQLite, SQLAlchemy or Dagster)
        problem = f"Dagster's history cannot be read: {type(error).__name__}: {error}".splitlines()[0]
        advice = f"move {store.home.dagster} away to begin a new one; the store itself does not need it"
        return [Finding("runs", False, f"{problem}; {advice}")]


def _last_runs(store: Store, instance: dg.DagsterInstance, ended: list[str]) -> Finding:
    """Whether the last night of each shard failed."""
    last = {shard: run for shard in store.shards if (run := last_night(instance, shard)) is not None}
    failed = [
        f"the last night of {shard}, run {run.run_id}, failed{_reason(instance, run.run_id)}"
        for shard, run in last.items()
        if run.status is dg.DagsterRunStatus.FAILURE
    ]
    marked = [f"marked as failed, since their processes are gone: {', '.join(ended)}"] if ended else []
    if failed:
        return Finding("runs", False, "; ".join([*failed, *marked, "`memstate maintain` runs it again"]))
    states = [f"{shard} {run.status.value.lower()}" for shard, run in last.items()]
    return Finding("runs", True, "; ".join([f"last nights: {', '.join(states) or 'none yet'}", *marked]))


def _reason(instance: dg.DagsterInstance, run_id: str) -> str:
    """Our error if there is one, else what Dagster says of the run's end."""
    kinds = (dg.DagsterEventType.STEP_FAILURE, dg.DagsterEventType.RUN_FAILURE)
    for kind in kinds:
        for record in instance.get_records_for_run(run_id, of_type=kind, limit=1).records:
            event = record.event_log_entry.dagster_event
            error = getattr(event.event_specific_data, "error", None) if event else None
            while error is not None and error.cause is not None:
                error = error.cause
            text = error.message if error is not None else record.event_log_entry.user_message
            if text and text.strip():
                return f": {text.strip().splitlines()[0]}"
    return ""


def _queue(instance: dg.DagsterInstance, now: datetime) -> Finding:
    queued = instance.get_run_records(dg.RunsFilter(statuses=[dg.DagsterRunStatus.QUEUED]), ascending=True)
    beats = [heartbeat.timestamp for heartbeat in instance.get_daemon_heartbeats().values()]
    is_running = bool(beats) and now - datetime.fromtimestamp(max(beats), UTC) < BEATING
    daemon = "the daemon is running" if is_running else "no daemon is running, so schedule and sensors rest"
    waiting = f"queued runs: {len(queued)}"
    oldest = min((record.create_timestamp for record in queued), default=now)
    is_stuck = now - oldest > PATIENCE and not instance.get_runs(dg.RunsFilter(statuses=_AT_WORK), limit=1)
    if queued and not is_running:
        return Finding("daemon", False, f"{waiting}, and {daemon}: `memstate ui` starts it")
    if is_stuck:
        since = oldest.isoformat(timespec="minutes")
        return Finding("daemon", False, f"{waiting}, the first since {since}, and none begins: restart `memstate ui`")
    return Finding("daemon", True, f"{daemon}; {waiting}")
