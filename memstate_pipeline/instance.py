"""Dagster's instance: run history and settings, in the home unless $DAGSTER_HOME names another folder."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import dagster as dg
from sqlalchemy.exc import DatabaseError, OperationalError

from memstate_core.model.errors import HistoryUnreadable
from memstate_core.state.home import Home
from memstate_pipeline.run_history import kept_open

DAGSTER_VARIABLE = "DAGSTER_HOME"
SETTINGS_NAME = "dagster.yaml"
_FIRST_SETTINGS = """\
# Created by memstate; edit as you like.
telemetry:
  enabled: false
concurrency:
  pools:
    granularity: run
    default_limit: 1
"""
"""The settings of homes that were made before runs were retried; if nobody edited them, they are replaced."""
_SECOND_SETTINGS = f"""\
{_FIRST_SETTINGS}run_retries: # of runs whose process died; runs that failed are not repeated
  enabled: true
  max_retries: 2
  retry_on_asset_or_op_failure: false
"""
"""The settings of homes that were made before the length of runs was limited; replaced in the same way."""
_THIRD_SETTINGS = f"""\
{_SECOND_SETTINGS}run_monitoring: # ends runs that take longer than schedule.max_run_hours of memstate.toml
  enabled: true
  start_timeout_seconds: 600
  poll_interval_seconds: 60
"""
"""The settings of homes that were made before the dialog for mail addresses was off; replaced in the same way."""
DAGSTER_SETTINGS = f"""\
{_THIRD_SETTINGS}nux: # the dialog that asks for a mail address
  enabled: false
retention: # days that ticks are kept; retention.run_days of memstate.toml says how long runs are
  schedule:
    purge_after_days: 180
  sensor:
    purge_after_days: {{skipped: 2, success: 30, failure: 30, started: 30}}
"""


def dagster_home(home: Home, environ: Mapping[str, str] = os.environ) -> Path:
    """The folder of the instance, with settings: no telemetry, one writer, retries after a death, old ticks removed."""
    folder = Path(environ.get(DAGSTER_VARIABLE) or home.dagster)
    folder.mkdir(parents=True, exist_ok=True)
    settings = folder / SETTINGS_NAME
    if not settings.exists() or settings.read_text() in (_FIRST_SETTINGS, _SECOND_SETTINGS, _THIRD_SETTINGS):
        settings.write_text(DAGSTER_SETTINGS)
    return folder


@contextmanager
def dagster_instance(home: Home) -> Iterator[dg.DagsterInstance]:
    """The instance that the command line and the UI share.

    Raises:
        HistoryUnreadable: its settings or its databases are damaged.
    """
    folder = dagster_home(home)
    try:
        with _opened(folder) as instance, kept_open(instance):
            yield instance
    except DatabaseError as error:
        if isinstance(error, OperationalError):  # of a disk that is full, a lock or permissions
            raise
        raise HistoryUnreadable(str(folder), str(error.orig)) from error


def _opened(folder: Path) -> dg.DagsterInstance:
    try:
        return dg.DagsterInstance.from_config(str(folder))
    except (DatabaseError, OSError):
        raise
    except Exception as error:  # of Dagster or its YAML parser, which it does not export
        problem = next(iter(str(error).splitlines()), type(error).__name__)
        raise HistoryUnreadable(str(folder), f"{SETTINGS_NAME}: {problem}") from error
