"""Sensors that look at the store: evidence that waits, snapshots that went stale, corrections from the command line."""

from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
from msgspec import MsgspecError
from msgspec import json as msgjson

from memstate_core.model.errors import MemstateError
from memstate_core.night.ledger_audit import UNREADABLE
from memstate_core.night.resharding.inputs import RESHARDING
from memstate_core.night.rollback import ROLLBACK
from memstate_core.run.publications import REEMBEDDING
from memstate_core.run.store import Store
from memstate_core.run.waiting import Waiting, is_late, waiting_evidence
from memstate_core.state.current import current_snapshot
from memstate_core.state.snapshots import Snapshot, load_snapshot, numbers
from memstate_pipeline.nights import NIGHTLY
from memstate_pipeline.notify.notifier import notify_of_stale
from memstate_pipeline.report.format import ago
from memstate_pipeline.report.index import CORRECTION
from memstate_pipeline.resources import NOW_TAG
from memstate_pipeline.steps import pages_of

_CORRECTIONS_AT_ONCE = 50
_NO_NIGHTS = (CORRECTION, ROLLBACK, REEMBEDDING, RESHARDING)


def pressure_sensor(store: Store) -> dg.SensorDefinition:
    """Requests a night ahead of schedule for each shard in which much evidence waits for one."""

    @dg.sensor(
        name="memory_pressure",
        job_name=NIGHTLY,
        minimum_interval_seconds=60,
        default_status=dg.DefaultSensorStatus.RUNNING,
    )
    def memory_pressure() -> Iterator[dg.RunRequest | dg.SkipReason]:
        waiting, most = _waiting(store), store.settings.schedule.pressure_rows
        pressed = {shard: found for shard, found in waiting.items() if 0 < most <= found.rows}
        for shard, found in pressed.items():
            at = datetime.now(UTC).isoformat()
            # Once for so many rows: a night that fails is repeated by the schedule, not every minute.
            key = f"pressure/{shard}/{found.arrived // most}"
            yield dg.RunRequest(run_key=key, partition_key=shard, tags={NOW_TAG: at})
        if not pressed:
            listed = ", ".join(f"{found.rows:,} in {shard}" for shard, found in waiting.items())
            yield dg.SkipReason(f"evidence that waits for a night: {listed or 'none'}")

    return memory_pressure


def stale_sensor(store: Store) -> dg.SensorDefinition:
    """Notifies of each shard whose served snapshot is older than the settings allow."""

    @dg.sensor(name="stale_snapshots", minimum_interval_seconds=600, default_status=dg.DefaultSensorStatus.RUNNING)
    def stale_snapshots() -> dg.SkipReason:
        now, found = datetime.now(UTC), []
        waiting = _waiting(store) if store.settings.schedule.skip_unchanged_days else {}
        for shard, served in _readable(store):
            rows = waiting[shard].rows if shard in waiting else 0
            if served is not None and is_late(store, served, written := _last_night(store, served), rows, now):
                found.append(f"{served.name}, last night {ago(now - written)}")
                notify_of_stale(store, shard, served.name, written, now)
        return dg.SkipReason(f"stale: {'; '.join(found)}" if found else "no served snapshot is stale")

    return stale_snapshots


def corrections_sensor(store: Store) -> dg.SensorDefinition:
    """Shows corrections as observations of the asset `snapshot`; the cursor is the last page that was shown."""

    @dg.sensor(name="corrections", minimum_interval_seconds=30, default_status=dg.DefaultSensorStatus.RUNNING)
    def corrections(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        shown = int(context.cursor or 0)
        pages = [(page.stat().st_mtime_ns, page) for page in store.home.reports.glob(f"{CORRECTION}*.html")]
        fresh = sorted((at, page) for at, page in pages if at > shown)[:_CORRECTIONS_AT_ONCE]
        events = [_observation(page, store.settings.ui.api_url) for _, page in fresh]
        cursor = str(fresh[-1][0]) if fresh else context.cursor
        return dg.SensorResult(asset_events=events, cursor=cursor, skip_reason=None if events else "no new correction")

    return corrections


def _observation(page: Path, api_url: str) -> dg.AssetObservation:
    """What a page says of its correction; of a page whose JSON is gone, its place alone."""
    shard = page.stem.rpartition("-")[2]
    try:
        document = msgjson.decode(page.with_suffix(".json").read_bytes())
    except (OSError, MsgspecError):
        document = {}
    known = {name: document[name] for name in ("run_id", "snapshot", "state_hash", "now") if document.get(name)}
    counts = {f"decisions/{name}": count for name, count in document.get("counts", {}).items()}
    return dg.AssetObservation("snapshot", partition=shard, metadata={**pages_of(page, api_url), **known, **counts})


def _waiting(store: Store) -> dict[str, Waiting]:
    """The evidence of each shard, and how much of it waits for a night.

    Nothing if the ledger cannot be read. Left out are shards that cannot be read, which `doctor` names, and those that
    serve a rollback: what it left to the next night is no reason to begin that night.
    """
    readable = {
        shard: served
        for shard, served in _readable(store)
        if served is None or not served.manifest.run_id.startswith(ROLLBACK)
    }
    try:
        return waiting_evidence(store, readable)
    except UNREADABLE:
        return {}


def _last_night(store: Store, served: Snapshot) -> datetime:
    """When the last night published; of the oldest kept snapshot if all that are kept came from other commands."""
    written, shard = served.written_at(), served.manifest.shard
    for number in reversed(numbers(store.home, shard)):
        with suppress(MemstateError):
            kept = load_snapshot(store.home, shard, number)
            written = kept.written_at()
            if not kept.manifest.run_id.startswith(_NO_NIGHTS):
                break
    return written


def _readable(store: Store) -> Iterator[tuple[str, Snapshot | None]]:
    """The served snapshot of each shard that can be read; None of one that serves none."""
    for shard in store.shards:
        with suppress(MemstateError):
            yield shard, current_snapshot(store.home, shard)
