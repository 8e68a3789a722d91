"""A SQLite file that keeps what is expensive to compute: vectors of texts, answers of language models.

Losing the file costs time and nothing else, so it never stops its caller. A damaged file is set aside and a new one
started; where the file cannot be opened or written (a read-only home, a full disk) reading finds nothing and
writing keeps nothing. SQLite serves here because entries come in small sets and must survive a kill at any moment.

Invariant: a statement is one transaction, so an entry is whole or absent.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_random_exponential

T = TypeVar("T")

WAIT_SECONDS = 60.0
"""How long a statement waits for other connections before the cache is bypassed."""

_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_READ_ONLY = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH)
_UNUSABLE = (*_BUSY, *_READ_ONLY, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)
_log = logging.getLogger("memstate.cache")


class CacheFile:
    """One table in one file. Threads and processes may share it; each thread has a connection of its own."""

    def __init__(self, path: Path, table: str, wait_seconds: float = WAIT_SECONDS) -> None:
        """Describes a cache; the file is opened at the first statement.

        Args:
            path: the file, which need not exist.
            table: the `CREATE TABLE IF NOT EXISTS` statement of its table.
            wait_seconds: how long a statement waits for other connections.
        """
        self._path, self._table, self._wait = path, table, wait_seconds
        self._own = threading.local()
        self._opened: list[sqlite3.Connection] = []
        self._opening = threading.Lock()

    def select(self, query: str, parameters: Sequence[Any]) -> list[Any]:
        """The rows of a query; none where the file is unusable."""
        return self._tolerant(lambda database: database.execute(query, parameters).fetchall(), [])

    def insert(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """Writes rows in one transaction; does nothing where the file is unusable."""

        def write(database: sqlite3.Connection) -> None:
            with database:
                database.executemany(statement, rows)

        self._tolerant(write, None)

    def close(self) -> None:
        """Closes the connections of all threads; a later statement opens a new one."""
        with self._opening:
            while self._opened:
                self._opened.pop().close()
            self._own = threading.local()

    def _tolerant(self, work: Callable[[sqlite3.Connection], T], otherwise: T) -> T:
        try:
            return self._repaired(work)
        except OSError as error:
            _log.info("%s is bypassed: %s", self._path, error)
        except sqlite3.Error as error:
            if _code(error) not in _UNUSABLE:
                raise
            level = logging.INFO if _code(error) in _READ_ONLY else logging.WARNING
            _log.log(level, "%s is bypassed: %s", self._path, error)
        return otherwise

    def _repaired(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Runs a statement, and once more with a new file if it finds the file damaged."""
        try:
            return self._patient(work)
        except sqlite3.DatabaseError as error:
            if _code(error) not in _DAMAGED:
                raise
            self._drop_connection()
            self._set_aside(error)
        return self._patient(work)

    def _patient(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Repeats what SQLite refuses without waiting: switching to WAL, and recovery by another connection."""
        attempts = Retrying(
            retry=retry_if_exception(lambda error: isinstance(error, sqlite3.Error) and _code(error) in _BUSY),
            stop=stop_after_delay(self._wait),
            wait=wait_random_exponential(multiplier=0.01, max=0.5),
            reraise=True,
        )
        return attempts(lambda: work(self._connection()))

    def _connection(self) -> sqlite3.Connection:
        database: sqlite3.Connection | None = getattr(self._own, "database", None)
        if database is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            database = sqlite3.connect(self._path, timeout=self._wait, check_same_thread=False)
            try:
                _prepare(database, self._table)
            except BaseException:
                database.close()
                raise
            with self._opening:
                self._opened.append(database)
                self._own.database = database
        return database

    def _drop_connection(self) -> None:
        database: sqlite3.Connection | None = getattr(self._own, "database", None)
        if database is not None:
            with self._opening:
                self._opened.remove(database)
            self._own.database = None
            database.close()

    def _set_aside(self, error: sqlite3.DatabaseError) -> None:
        """Renames a damaged file, unless another process has done so and the file is sound now."""
        from filelock import FileLock  # only here: importing it takes a while

        with FileLock(_beside(self._path, ".lock")):
            if _is_sound(self._path):
                return
            aside = _beside(self._path, ".damaged")
            self._path.replace(aside)
            for suffix in ("-wal", "-shm"):
                _beside(self._path, suffix).unlink(missing_ok=True)
        _log.warning(
            "%s is damaged (%s): it was renamed to %s and a new cache was started; its entries are computed again",
            self._path, error, aside.name,
        )  # fmt: skip


def _prepare(database: sqlite3.Connection, table: str) -> None:
    """Sets the journal mode where it is not set yet, since that needs the file for itself, and creates the table."""
    if database.execute("PRAGMA journal_mode").fetchone() != ("wal",):
        database.execute("PRAGMA journal_mode=WAL")
    database.execute(table)


def _is_sound(path: Path) -> bool:
    database = sqlite3.connect(path, timeout=WAIT_SECONDS)
    try:
        return bool(database.execute("PRAGMA quick_check(1)").fetchone() == ("ok",))
    except sqlite3.DatabaseError:
        return False
    finally:
        database.close()


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _code(error: sqlite3.Error) -> int:
    """The primary result code; 0 for errors of the Python module itself."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF
