"""Runs that Dagster takes for running although their process is gone, after a kill or a power cut.

Such a run would hold its place in the pool for ever, and no later run would begin. A run holds the store's lock from
its start to its end, and the kernel releases the lock of a dead process. So a run that the note beside the free lock
names is dead, and so is a silent one that does not hold the lock. It is marked as failed, which frees its place;
Dagster's daemon then starts it again (`run_retries`). Where machines share the history of a store at a URL, a run may
be on any of them, and the lease of the store takes the place of the lock. The times of its events are those of another
clock then, so it is silent when its last event has been seen to be the last for long enough, by this machine's clock.

Where nights run side by side, each holds the lock of its shard from its start to its end, which stands for the store's.

A run that was launched and has not started yet holds no lock. It has minutes to start while the server that launched it
lives; a kill of everything ends that server, too, and then it has no more time than a run that started. Should it start
after all, Dagster refuses it, since it is marked as failed, and runs the one in its place. One that waits for a worker
has the time that Dagster's monitoring gives it (`start_timeout_seconds`).
"""

from __future__ import annotations

import json
import socket
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import polars as pl

from memstate_core.model.errors import MemstateError
from memstate_core.night.checkout.note import store_url
from memstate_core.run.store import Store
from memstate_core.state.fold.decisions import PUBLISHED
from memstate_core.state.home import Home
from memstate_core.state.ledger.ledger import Ledger
from memstate_core.state.lock import holder_of, left_by_the_dead
from memstate_core.storage.lease import lease_holder
from memstate_core.storage.purpose import STORE
from memstate_core.storage.shard_lease import night_holders
from memstate_core.storage.storage import storage
from memstate_pipeline.nights import WHOLE_RUN, is_night
from memstate_pipeline.notify.nights import failed_night
from memstate_pipeline.report.failed_run import RunFailure
from memstate_pipeline.run_history import is_local

STARTED_AND_SILENT = timedelta(seconds=30)
"""How long a run that has started may be silent without holding the lock: longer than from its start to its lock."""
_REST = "The next run does what it had not published."
STARTING_AND_SILENT = timedelta(minutes=5)
"""How long a run may take from its launch to its start while the server that launched it lives."""
_CONNECT_SECONDS = 2.0
_SERVER_TAG = ".dagster/grpc_info"
"""The tag in which Dagster records the code server that launched a run."""
_REASON = "its process is gone: it was killed, or the machine stopped."
_RUNNING = [dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING]


Seen = dict[str, tuple[int, datetime]]
"""The last event of each run that is running, and when it was first found to be the last."""


def end_dead_runs(store: Store, instance: dg.DagsterInstance, now: datetime, seen: Seen | None = None) -> list[str]:
    """Marks dead runs as failed, if Dagster's instance is the home's own, so that all its runs lock this store.

    A night that had not published leaves a page that says so, and is notified of.

    Args:
        store: the store.
        instance: Dagster's instance.
        now: the machine's time.
        seen: what earlier calls saw, which this one brings up to date. Who asks once has none, and finds of the runs of
            a shared history only those that died here while they held the store.

    Returns:
        The ids of the runs.
    """
    home = store.home
    if Path(instance.root_directory) != home.dagster:
        return []
    dead = _dead(store, instance, now, seen)
    published = _published(home, [run.run_id for run in dead])
    for run in dead:
        snapshots = published.get(run.run_id)
        rest = f"It had published {snapshots}; the next run writes its report." if snapshots else _REST
        instance.add_run_tags(run.run_id, WHOLE_RUN)
        instance.report_run_failed(run, f"Run {run.run_id} is marked as failed, since {_REASON} {rest}")
        if snapshots is None and is_night(run):
            died = RunFailure("ProcessDied", f"its process is gone. {_REST}")
            failed_night(store, run.run_id, run.tags, died, now, now)
    return [run.run_id for run in dead]


def _dead(store: Store, instance: dg.DagsterInstance, now: datetime, seen: Seen | None) -> list[dg.DagsterRun]:
    url = store_url(store)
    running = instance.get_run_records(dg.RunsFilter(statuses=_RUNNING))
    if seen is not None:
        for ended in seen.keys() - {record.dagster_run.run_id for record in running}:
            del seen[ended]
    left = " ".join(left_by_the_dead(lock) or "" for lock in _locks(store)) if running else ""
    killed = [record.dagster_run for record in running if record.dagster_run.run_id in left]
    others = [record for record in running if record.dagster_run not in killed]
    silent = [record.dagster_run for record in others if _is_silent(instance, record, now, seen)]
    if not silent:
        return killed
    writers = " ".join(map(holder_of, _locks(store))) if is_local(instance) or not url else _leaseholders(url)
    return [*killed, *(run for run in silent if writers is not None and run.run_id not in writers)]


def _locks(store: Store) -> list[Path]:
    """The lock of the store, and those of its shards."""
    return [store.home.lock, *map(store.home.shard_lock, store.shards)]


def _leaseholders(url: str) -> str | None:
    """Who holds the leases of a store at a URL and of its shards; None if that cannot be known now."""
    place = storage(url, STORE)
    try:
        return " ".join([lease_holder(place), *night_holders(place)])
    except MemstateError:
        return None


def _published(home: Home, run_ids: list[str]) -> dict[str, str]:
    """The snapshots that runs had published, by run."""
    ledger = Ledger(home.ledger)
    if not run_ids or ledger.version("transitions") is None:
        return {}
    own = (pl.col("kind") == PUBLISHED) & pl.col("run_id").is_in(run_ids)
    rows = ledger.scan("transitions").filter(own).select("run_id", "shard", "payload_json").collect()
    number = pl.col("payload_json").str.json_path_match("$.number")
    named = rows.group_by("run_id").agg(pl.format("{}/{}", "shard", number).sort().str.join(", "))
    return dict(named.iter_rows())


def _is_silent(instance: dg.DagsterInstance, record: dg.RunRecord, now: datetime, seen: Seen | None) -> bool:
    """Whether nothing was recorded of a run for longer than it may be silent without holding the lock."""
    run = record.dagster_run
    starting = run.status == dg.DagsterRunStatus.STARTING
    if starting and not isinstance(instance.run_launcher, dg.DefaultRunLauncher):
        return False
    silence = STARTING_AND_SILENT if starting and _may_be_launched(run) else STARTED_AND_SILENT
    return now - _silent_since(instance, record, now, seen) > silence


def _may_be_launched(run: dg.DagsterRun) -> bool:
    """Whether the server that launched a run lives; without its address there was no launch."""
    return _SERVER_TAG in run.tags and _listens(json.loads(run.tags[_SERVER_TAG]))


def _listens(server: dict[str, str]) -> bool:
    family = socket.AF_UNIX if "socket" in server else socket.AF_INET
    with closing(socket.socket(family)) as probe:
        probe.settimeout(_CONNECT_SECONDS)
        try:
            probe.connect(server["socket"] if "socket" in server else (server["host"], int(server["port"])))
        except OSError:
            return False
        return True


def _silent_since(instance: dg.DagsterInstance, record: dg.RunRecord, now: datetime, seen: Seen | None) -> datetime:
    """When the last event of a run was recorded; in a shared history, since when it is known to be the last."""
    run_id = record.dagster_run.run_id
    last = instance.get_records_for_run(run_id, limit=1, ascending=False).records
    if is_local(instance):
        return datetime.fromtimestamp(last[0].timestamp, UTC) if last else record.create_timestamp
    if seen is None:
        return now
    event = last[0].storage_id if last else 0
    if seen.get(run_id, (None, now))[0] != event:
        seen[run_id] = event, now
    return seen[run_id][1]
