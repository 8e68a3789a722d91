"""Dagster's run history in SQLite, read and written by connections that stay open while an instance is used.

For each of the hundreds of accesses of a night, Dagster makes an engine, compiles its statement anew, opens the
database and closes it, which moves the write-ahead log into the database. Here one engine serves a database while the
instance is open. Dagster still makes the databases, and other storages (Postgres, in memory) are left as they are. Only
public methods are replaced, in one instance; the two classes are those that `dagster.yaml` names, and not exported.

The invariant: after `kept_open` no connection is left, so the databases are whole without their write-ahead logs.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

import dagster as dg
from cachetools import LRUCache
from dagster._core.storage.event_log import SqliteEventLogStorage
from dagster._core.storage.runs import SqliteRunStorage
from sqlalchemy import Connection, Engine, create_engine, inspect

Connect = Callable[..., AbstractContextManager[Connection]]

BUSY_SECONDS = 30
"""How long a connection waits for a writer in another process, as Dagster's do."""

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
            stack.enter_context(_tables_of(events, index))
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


class _Engines(LRUCache[Any, Engine]):
    """The engines used last, by database; what `popitem` removes, for room too, is disposed."""

    def popitem(self) -> tuple[Any, Engine]:
        """Removes the one used least recently."""
        name, engine = super().popitem()
        engine.dispose()
        return name, engine


class _Kept:
    """Opens connections as a storage does, from the second one to a database on by an engine that is kept.

    Args:
        first: the storage's own way, which makes the database if it is missing.
    """

    def __init__(self, first: Connect) -> None:
        self._first = first
        self._engines = _Engines(MOST_OPEN)
        self._lock = threading.Lock()

    @contextmanager
    def __call__(self, name: Any = None) -> Iterator[Connection]:
        """A connection in a transaction, to the database of a run or to the only one."""
        with self._lock:
            engine = self._engines.get(name)
        if engine is not None:
            with engine.begin() as connection:
                yield connection
            return
        with self._first(*([] if name is None else [name])) as connection:
            url = connection.engine.url
            yield connection
        with self._lock:
            if name not in self._engines:  # another thread may have been first
                self._engines[name] = create_engine(url, connect_args={"timeout": BUSY_SECONDS})

    def close(self) -> None:
        """Closes all of them."""
        while self._engines:
            self._engines.popitem()  # `clear` would not dispose them


@contextmanager
def _replaced(storage: Any, name: str, kept: _Kept) -> Iterator[None]:
    vars(storage)[name] = kept
    try:
        yield
    finally:
        del vars(storage)[name]
        kept.close()


@contextmanager
def _tables_of(events: Any, index: _Kept) -> Iterator[None]:
    """Dagster asks by another engine, before many events, whether the index has a table; one that is there stays."""
    found: set[str] = set()

    def has_table(name: str) -> bool:
        if name not in found:
            with index() as connection:
                if inspect(connection).has_table(name):
                    found.add(name)
        return name in found

    vars(events)["has_table"] = has_table
    try:
        yield
    finally:
        del vars(events)["has_table"]
