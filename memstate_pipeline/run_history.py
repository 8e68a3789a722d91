"""Dagster's run history in SQLite, read and written by connections that stay open while an instance is used.

For each of the hundreds of accesses of a night, Dagster makes an engine, compiles its statement anew, opens the
database and closes it, which moves the write-ahead log into the database. Here one connection serves a database while
the instance is open, and others for as long as several threads use it at once. Dagster still makes the databases, and
other storages (Postgres, in memory) are left as they are. Only public methods are replaced, in one instance; the two
classes are those that `dagster.yaml` names, and not exported.

The invariant: after `kept_open` no connection is left, so the databases are whole without their write-ahead logs.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import lru_cache
from typing import Any

import dagster as dg
from cachetools import LRUCache
from dagster._core.storage.event_log import SqliteEventLogStorage
from dagster._core.storage.runs import SqliteRunStorage
from sqlalchemy import URL, Connection, Engine, NullPool, create_engine, inspect

Connect = Callable[..., AbstractContextManager[Connection]]

BUSY_SECONDS = 30
"""How long a connection waits for a writer in another process, as Dagster's do."""

_ASKED = ("has_asset_key_col", "has_secondary_index")
"""What Dagster asks about the index, by connections of its own or of the instance: columns, and migrations of data."""

_RUN = re.compile(r"Dagster run ([\w-]+)")

MOST_OPEN = 4
"""Maximum number of open databases in each storage: each run has one, and some commands read those of many runs."""


@contextmanager
def kept_open(instance: dg.DagsterInstance) -> Iterator[None]:
    """Within it, the instance keeps the databases of its history open, if they are SQLite files."""
    runs, events = instance.run_storage, instance.event_log_storage
    with ExitStack() as stack:
        if isinstance(runs, SqliteRunStorage):
            stack.enter_context(_replaced(runs, "connect", _Kept(runs.connect)))
        if isinstance(events, SqliteEventLogStorage):
            index = _Kept(events.index_connection)
            stack.enter_context(_replaced(events, "run_connection", _Kept(events.run_connection)))
            stack.enter_context(_replaced(events, "index_connection", index))
            stack.enter_context(_schema_of(events, index))
        yield


def is_local(instance: dg.DagsterInstance) -> bool:
    """Whether the history is on this machine, so that no other machine writes to it."""
    return isinstance(instance.run_storage, SqliteRunStorage)


def is_of_ended_run(instance: dg.DagsterInstance, holder: str) -> bool:
    """Whether a lock or a lease is that of a run which has ended by the history; a lease stays for a time after that.

    Args:
        instance: Dagster's, with the history that machines share.
        holder: who holds it, as `StoreLocked` names the holder.
    """
    named = _RUN.search(holder)
    run = instance.get_run_by_id(named[1]) if named else None
    return run is not None and run.is_finished


@lru_cache(maxsize=4 * MOST_OPEN)
def _engine(url: URL) -> Engine:
    """The engine of a database, which keeps the statements that it compiled and no connection."""
    return create_engine(url, poolclass=NullPool, connect_args={"timeout": BUSY_SECONDS})


class _Database:
    """A database: its engine, and its connection that nobody uses at the moment."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.idle: Connection | None = None

    def connection(self) -> Connection:
        """The idle connection, or a new one."""
        idle, self.idle = self.idle, None
        return idle or self.engine.connect()

    def close(self) -> None:
        """Closes the idle connection."""
        if self.idle is not None:
            self.idle.close()


class _Databases(LRUCache[Any, _Database]):
    """The databases used last; what `popitem` removes, for room too, is closed."""

    def popitem(self) -> tuple[Any, _Database]:
        """Removes the one used least recently."""
        name, database = super().popitem()
        database.close()
        return name, database


class _Kept:
    """Opens connections as a storage does, from the second one to a database on by an engine, and keeps one of each.

    Args:
        first: the storage's own way, which makes the database if it is missing.
    """

    def __init__(self, first: Connect) -> None:
        self._first = first
        self._databases = _Databases(MOST_OPEN)
        self._lock = threading.Lock()

    @contextmanager
    def __call__(self, name: Any = None) -> Iterator[Connection]:
        """A connection in a transaction, to the database of a run or to the only one."""
        with self._lock:
            database = self._databases.get(name)
            known = None if database is None else database.connection()
        if database is not None and known is not None:
            with self._kept(name, database, known):
                yield known
            return
        with self._first(*([] if name is None else [name])) as connection:
            url = connection.engine.url
            yield connection
        with self._lock:
            if name not in self._databases:  # another thread may have been first
                self._databases[name] = _Database(_engine(url))

    @contextmanager
    def _kept(self, name: Any, database: _Database, connection: Connection) -> Iterator[None]:
        """A transaction; its connection is kept if it succeeds, the database is not closed, and no other is kept."""
        try:
            with connection.begin():
                yield
            with self._lock:
                if self._databases.get(name) is database and database.idle is None:
                    database.idle = connection
                    return
        except BaseException:
            connection.close()
            raise
        connection.close()

    def close(self) -> None:
        """Closes all of them."""
        with self._lock:
            while self._databases:
                self._databases.popitem()  # `clear` would close none


@contextmanager
def _replaced(storage: Any, name: str, kept: _Kept) -> Iterator[None]:
    vars(storage)[name] = kept
    try:
        yield
    finally:
        del vars(storage)[name]
        kept.close()


@contextmanager
def _schema_of(events: Any, index: _Kept) -> Iterator[None]:
    """Dagster asks before many events whether the index has a table, a column or a migration; what is there stays."""

    def has_table(name: str) -> bool:
        with index() as connection:
            return inspect(connection).has_table(name)

    asked = {"has_table": has_table} | {name: getattr(events, name) for name in _ASKED}
    vars(events).update({name: _kept_answers(has) for name, has in asked.items()})
    try:
        yield
    finally:
        for name in asked:
            del vars(events)[name]


def _kept_answers(has: Callable[[str], bool]) -> Callable[[str], bool]:
    """Asks again only for what was missing."""
    found: set[str] = set()

    def answer(name: str) -> bool:
        if name not in found and has(name):
            found.add(name)
        return name in found

    return answer
