"""Dagster's run history in tests."""

from __future__ import annotations

import importlib
import sqlite3
from collections.abc import Callable
from typing import Any

_STORAGES = (
    "event_log.sqlite.sqlite_event_log", "runs.sqlite.sqlite_run_storage", "schedules.sqlite.sqlite_schedule_storage",
)  # fmt: skip


def hurried() -> None:
    """Makes Dagster's history in SQLite cheaper; one in a database server stays as it is.

    Synchronous writes are off: they protect against power loss only, and memstate's own files are written as usual.
    Outside `memstate_pipeline.run_history`, Dagster makes an engine for each access, which compiles the statement anew,
    and reads all schema revisions for each database; here a process makes an engine once per database and reads the
    revisions once.
    """
    from alembic.script import ScriptDirectory
    from sqlalchemy import event
    from sqlalchemy.engine import Engine

    def unsynchronized(connection: Any, _: Any) -> None:
        if isinstance(connection, sqlite3.Connection):
            connection.execute("PRAGMA synchronous = OFF")

    event.listen(Engine, "connect", unsynchronized)
    for name in _STORAGES:
        module: Any = importlib.import_module(f"dagster._core.storage.{name}")
        module.create_engine = _once_per_database(module.create_engine)
    revisions: Any = ScriptDirectory
    revisions.from_config = _once_per_folder(revisions.from_config)


def _once_per_folder(read: Callable[..., Any]) -> Callable[..., Any]:
    """Alembic's revisions by their folder: Dagster's five storages share one and make many configurations."""
    folders: dict[str, Any] = {}

    def directory(config: Any) -> Any:
        folder = config.get_main_option("script_location")
        if folder not in folders:
            folders[folder] = read(config)
        return folders[folder]

    return directory


def _once_per_database(create: Callable[..., Any]) -> Callable[..., Any]:
    engines: dict[str, Any] = {}

    def engine(database: str, **options: Any) -> Any:
        if database not in engines:
            engines[database] = create(database, **options)
        return engines[database]

    return engine
