"""Dagster's record of runs in a database that the machines of a store share: what an erasure removes of it.

The same goes as in the files of a home (`files.clear_runs`): runs that have ended, all events, what sensors said. The
tables are written again, so that none of their pages holds what was deleted.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from memstate_core.model.errors import HistoryUnreachable
from memstate_core.night.erasure.files import UNFINISHED

if TYPE_CHECKING:
    from sqlalchemy import Connection

POSTGRES_VARIABLE = "DAGSTER_POSTGRES_URL"
"""Where Dagster keeps its history: `postgresql+psycopg2://USER:PASSWORD@HOST:5432/DATABASE`, one for each store."""

SETTINGS_NAME = "dagster.yaml"
_GOING_ON = f"SELECT run_id FROM runs WHERE status IN ({', '.join(map(repr, UNFINISHED))})"
_ENDED = f"FROM runs WHERE run_id NOT IN ({_GOING_ON})"
_CHANGES = (
    f"DELETE FROM event_logs WHERE run_id IS NULL OR run_id NOT IN ({_GOING_ON})",
    "DELETE FROM asset_event_tags WHERE event_id NOT IN (SELECT id FROM event_logs)",
    f"DELETE FROM asset_check_executions WHERE run_id IS NULL OR run_id NOT IN ({_GOING_ON})",
    "UPDATE asset_keys SET last_materialization = NULL, last_run_id = NULL",
    f"DELETE FROM run_tags WHERE run_id NOT IN ({_GOING_ON})",
    "DELETE FROM job_ticks",
    "DELETE FROM daemon_heartbeats",
    f"DELETE {_ENDED}",
)
_TABLES = (
    *("event_logs", "asset_event_tags", "asset_check_executions", "asset_keys"),
    *("run_tags", "job_ticks", "daemon_heartbeats", "runs"),
)


def run_database(dagster: Path, environ: Mapping[str, str] = os.environ) -> str | None:
    """The address of the database; None if the history is not in one.

    Args:
        dagster: Dagster's folder, whose settings may name the variable.
        environ: the environment of the machine.

    Raises:
        HistoryUnreachable: the settings name the variable, which is not set.
    """
    address, settings = environ.get(POSTGRES_VARIABLE), dagster / SETTINGS_NAME
    if not address and settings.is_file() and POSTGRES_VARIABLE in settings.read_text():
        raise HistoryUnreachable(f"the environment variable {POSTGRES_VARIABLE} is not set")
    return address or None


def ended_in_database(dagster: Path) -> int:
    """How many runs that have ended the database remembers; 0 without one.

    Raises:
        HistoryUnreachable: it does not answer.
    """
    with _connected(dagster) as connection:
        return 0 if connection is None else int(connection.exec_driver_sql(f"SELECT count(*) {_ENDED}").scalar_one())


def clear_database(dagster: Path) -> None:
    """Removes the runs that have ended, and all events, from the database, if there is one.

    Raises:
        HistoryUnreachable: it does not answer.
    """
    with _connected(dagster) as connection:
        if connection is not None:
            for statement in (*_CHANGES, *(f"VACUUM FULL {table}" for table in _TABLES)):
                connection.exec_driver_sql(statement)


@contextmanager
def _connected(dagster: Path) -> Iterator[Connection | None]:
    """A connection that commits each statement; None without a database, or before Dagster has made its tables."""
    address = run_database(dagster)
    if address is None:
        yield None
        return
    from sqlalchemy import create_engine, inspect
    from sqlalchemy.exc import SQLAlchemyError

    try:
        with create_engine(address, isolation_level="AUTOCOMMIT").connect() as connection:
            yield connection if inspect(connection).has_table("runs") else None
    except (SQLAlchemyError, ImportError) as error:  # what is no address may hold a password
        problem = str(getattr(error, "orig", "")) or f"${POSTGRES_VARIABLE} is no address that can be used"
        raise HistoryUnreachable(problem.splitlines()[0]) from error
