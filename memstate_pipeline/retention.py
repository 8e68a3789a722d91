"""Retention: removes old report pages, records of Dagster's runs and dumps that were read, as `[retention]` says.

Nothing that a topic rests on is removed, and all that is removed is named. A kill leaves less to remove for the next
time. Snapshots are pruned when a night publishes (`store.keep_snapshots`).
"""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg

from memstate_core.model.scope import is_shard
from memstate_core.run.store import Store
from memstate_core.state.sizes import size_of
from memstate_pipeline.assets.common import WRITER_POOL
from memstate_pipeline.old_events import remove_old_events
from memstate_pipeline.report.index import newest_first, nights, write_index
from memstate_pipeline.resources import StoreResource

_ENDED = [dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED]


@dataclass(frozen=True)
class Removal:
    """What is removed of one kind.

    Attributes:
        kind: `reports`, `runs` or `processed`.
        names: the pages, run ids or dumps.
        files: their files and folders.
    """

    kind: str
    names: list[str]
    files: list[Path]

    @property
    def size(self) -> int:
        """Bytes of the files."""
        return sum(size_of(path) for path in self.files)


def due(store: Store, instance: dg.DagsterInstance, now: datetime) -> list[Removal]:
    """What the settings no longer keep at a time.

    Args:
        store: the store.
        instance: Dagster's instance, whose runs are looked at.
        now: the time from which ages count.
    """
    pages = [page for shard in _reported(store) for page in _old_pages(store, shard)]
    runs = _old_runs(store, instance, now)
    dumps = _old_dumps(store, now)
    return [
        Removal("reports", [page.name for page in pages], [*pages, *(page.with_suffix(".json") for page in pages)]),
        Removal("runs", runs, [path for run in runs for path in _run_files(store, run)]),
        Removal("processed", [dump.name for dump in dumps], dumps),
    ]


def remove(store: Store, instance: dg.DagsterInstance, removals: list[Removal], now: datetime) -> None:
    """Removes it, and the events that no run on record has any more; the caller holds the store's lock.

    Args:
        store: the store.
        instance: Dagster's instance.
        removals: what is due.
        now: the time from which ages count.
    """
    for removal in removals:
        for run in removal.names if removal.kind == "runs" else []:
            instance.delete_run(run)
        for path in removal.files:
            shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)
    if any(removal.kind == "reports" and removal.names for removal in removals):
        write_index(store.home.reports)
    before = _runs_before(store, instance, now)
    events = 0 if before is None else remove_old_events(instance, before)
    if events or any(removal.kind == "runs" and removal.names for removal in removals):
        for name in ("runs.db", "runs/index.db"):
            _shrink(store.home.dagster / "history" / name)


def _reported(store: Store) -> list[str]:
    """The shards that have pages, also those from before their number was changed."""
    names = (page.stem.rpartition("-")[2] for page in store.home.reports.glob("*.html"))
    return sorted({*store.shards, *filter(is_shard, names)})


def _old_pages(store: Store, shard: str) -> list[Path]:
    """Nights and corrections are counted apart, so that many corrections remove no page of a night."""
    pages = newest_first(store.home.reports, f"*-{shard}.html")
    of_nights = nights(pages)
    others = [page for page in pages if page not in of_nights]
    return [page for group in (of_nights, others) for page in group[store.settings.retention.reports :]]


def _old_runs(store: Store, instance: dg.DagsterInstance, now: datetime) -> list[str]:
    before = _runs_before(store, instance, now)
    if before is None:
        return []
    return [run.run_id for run in instance.get_runs(dg.RunsFilter(statuses=_ENDED, created_before=before))]


def _runs_before(store: Store, instance: dg.DagsterInstance, now: datetime) -> datetime | None:
    """The time before which records of runs go; None if they stay, as in a folder that may hold the runs of others."""
    days = store.settings.retention.run_days
    own = Path(instance.root_directory) == store.home.dagster
    return now - timedelta(days=days) if days and own else None


def _run_files(store: Store, run: str) -> Iterator[Path]:
    yield from (store.home.dagster / "history" / "runs").glob(f"{run}.db*")
    yield store.home.dagster / "storage" / run


def _old_dumps(store: Store, now: datetime) -> list[Path]:
    days = store.settings.retention.processed_days
    if not days:
        return []
    dumps = sorted(path for path in store.home.processed.rglob("*") if path.is_file() and not path.is_symlink())
    return [dump for dump in dumps if _read_at(dump) < now - timedelta(days=days)]


def _read_at(dump: Path) -> datetime:
    """When a dump was moved after it was read: a rename changes the time of the file's record, not of its content."""
    facts = dump.stat()
    return datetime.fromtimestamp(max(facts.st_ctime, facts.st_mtime), UTC)


def _shrink(database: Path) -> None:
    """Gives free pages back; where another process holds the database they are used again instead."""
    if not database.is_file():  # the history is in a database server
        return
    with suppress(sqlite3.OperationalError), closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute("VACUUM")


@dg.op(pool=WRITER_POOL)
def remove_old(context: dg.OpExecutionContext, store: StoreResource) -> None:
    """Removes what the settings no longer keep, and logs its names."""
    now = datetime.now(UTC)
    removals = due(store.store, context.instance, now)
    sizes = {removal.kind: removal.size for removal in removals}
    remove(store.store, context.instance, removals, now)
    store.commit()
    for removal in removals:
        context.log.info(
            f"{removal.kind}: removed {len(removal.names)}, {sizes[removal.kind]:,} bytes: {removal.names}"
        )
