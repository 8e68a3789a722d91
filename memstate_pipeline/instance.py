"""Dagster's instance: run history and settings, in the home unless $DAGSTER_HOME names another folder."""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import dagster as dg
from sqlalchemy.exc import DatabaseError, DBAPIError, OperationalError

from memstate_core.model.errors import HistoryUnreachable, HistoryUnreadable, MemstateError, SettingsError
from memstate_core.night.erasure.run_database import SETTINGS_NAME
from memstate_core.policy.settings import load_settings
from memstate_core.state.files import disk_problem
from memstate_core.state.home import Home
from memstate_pipeline.causes import causes
from memstate_pipeline.instance_settings import dagster_settings, missing, named, replaces
from memstate_pipeline.run_history import kept_open

DAGSTER_VARIABLE = "DAGSTER_HOME"


def dagster_home(home: Home, environ: Mapping[str, str] = os.environ) -> Path:
    """The folder of the instance, with settings: no telemetry, so many nights at once, retries after a death.

    The limit of a home whose settings are not allowed is that of the default.
    """
    folder = Path(environ.get(DAGSTER_VARIABLE) or home.dagster)
    folder.mkdir(parents=True, exist_ok=True)
    settings = folder / SETTINGS_NAME
    nights = nights_at_once(home)
    if not settings.exists() or replaces(settings.read_text(), environ, nights):
        settings.write_text(dagster_settings(environ, nights))
    return folder


def nights_at_once(home: Home) -> int:
    """How many nights the settings of a home allow at once; 1 where they cannot be read, as other commands say."""
    try:
        return load_settings(home.root, os.environ).store.nights_at_once
    except SettingsError:
        return 1


@contextmanager
def dagster_instance(home: Home) -> Iterator[dg.DagsterInstance]:
    """The instance that the command line and the UI share.

    Raises:
        HistoryUnreadable: its settings or its databases are damaged.
        HistoryUnreachable: its history is in a database that does not answer, or that this machine cannot ask.
        DiskFull: the disk of its databases is full.
        PermissionError: they cannot be written.
    """
    folder = dagster_home(home)
    if lacks := missing(named((folder / SETTINGS_NAME).read_text()), os.environ):
        raise HistoryUnreachable(lacks)
    try:
        with _silent_retries(), _opened(folder) as instance, kept_open(instance):
            yield instance
    except MemstateError:
        raise
    except Exception as error:
        if (lost := history_lost(error)) is not None:
            raise lost from error
        if isinstance(error, OperationalError) and (problem := disk_problem(folder)) is not None:
            raise problem from error
        if not isinstance(error, DatabaseError) or isinstance(error, OperationalError):
            raise  # also of a lock
        raise HistoryUnreadable(str(folder), str(error.orig)) from error


def history_lost(error: BaseException) -> HistoryUnreachable | None:
    """The failure of a database server among the causes of an error; None if there is none."""
    for cause in causes(error):
        if isinstance(cause, DBAPIError) and not isinstance(cause.orig, sqlite3.Error):
            return HistoryUnreachable(next(iter(str(cause.orig).splitlines()), type(cause).__name__))
    return None


@contextmanager
def _silent_retries() -> Iterator[None]:
    """Leaves out what Dagster's package for Postgres logs of each attempt to connect; the last one raises an error."""

    def is_other(record: logging.LogRecord) -> bool:
        return not record.getMessage().startswith("Retrying failed database")

    root = logging.getLogger()
    root.addFilter(is_other)
    try:
        yield
    finally:
        root.removeFilter(is_other)


def _opened(folder: Path) -> dg.DagsterInstance:
    try:
        return dg.DagsterInstance.from_config(str(folder))
    except (DatabaseError, OSError):
        raise
    except Exception as error:  # of Dagster or its YAML parser, which it does not export
        if (lost := history_lost(error)) is not None:
            raise lost from error
        problem = next(iter(str(error).splitlines()), type(error).__name__)
        raise HistoryUnreadable(str(folder), f"{SETTINGS_NAME}: {problem}") from error
