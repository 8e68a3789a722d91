"""The `dagster.yaml` that memstate writes: Dagster's history in the home or a database; runs here, by workers, in pods.

Where the history is, and who executes runs, follows the environment of the machine, since the addresses may hold a
password: the file names the variables, never their values. What memstate wrote is replaced by a later one of `WRITTEN`,
never by an earlier one, so a shell without the variables cannot divide the history between two places. How many nights
run at once follows the settings of the store. A file that somebody edited stays as it is.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterable, Mapping

from memstate_core.night.erasure.run_database import POSTGRES_VARIABLE
from memstate_pipeline.pod_settings import IMAGE_VARIABLE, NAMESPACE_VARIABLE, POD_SETTINGS

DRIVER = "postgresql+psycopg2://"
"""How the address of the database begins: without the driver, SQLAlchemy takes another one from version 2.1 on."""

BROKER_VARIABLE, RESULTS_VARIABLE = "CELERY_BROKER_URL", "CELERY_RESULT_BACKEND"
"""The broker that takes runs to workers and what remembers how they ended; Celery itself reads both."""

WORKER = (
    "celery -A dagster_celery.app worker"
    " --concurrency 1 --prefetch-multiplier 1 --disable-prefetch --max-tasks-per-child 1"
)
"""What starts a worker, with these variables and a home of its own; each run has a process of its own.

Without `--disable-prefetch` a busy worker reserves one more run, even if another worker is idle.
"""

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
_FOURTH_SETTINGS = f"""\
{_THIRD_SETTINGS}nux: # the dialog that asks for a mail address
  enabled: false
retention: # days that ticks are kept; retention.run_days of memstate.toml says how long runs are
  schedule:
    purge_after_days: 180
  sensor:
    purge_after_days: {{skipped: 2, success: 30, failure: 30, started: 30}}
"""
"""The settings of homes that were made before the number of runs was limited; replaced in the same way.

The limit of a pool holds once Dagster has seen it, so of a history without runs it launched two at once.
"""
_LOCAL_SETTINGS = _FOURTH_SETTINGS.replace("  pools:\n", "  runs:\n    max_concurrent_runs: 1\n  pools:\n")
_DATABASE_SETTINGS = f"""\
{_LOCAL_SETTINGS}storage: # runs, events and schedules are in this database, which the machines of a store share
  postgres:
    postgres_url: {{env: {POSTGRES_VARIABLE}}}
"""
_WORKER_SETTINGS = f"""\
{_DATABASE_SETTINGS}run_launcher: # runs are executed by Celery's workers, each in its own home
  module: dagster_celery.launcher
  class: CeleryRunLauncher
  config:
    broker: {{env: {BROKER_VARIABLE}}}
    backend: {{env: {RESULTS_VARIABLE}}}
"""
_KUBERNETES_SETTINGS = f"{_DATABASE_SETTINGS}{POD_SETTINGS}"
WRITTEN = (
    _FIRST_SETTINGS,
    _SECOND_SETTINGS,
    _THIRD_SETTINGS,
    _FOURTH_SETTINGS,
    _LOCAL_SETTINGS,
    _DATABASE_SETTINGS,
    _WORKER_SETTINGS,
    _KUBERNETES_SETTINGS,
)
"""All that memstate has written, each replaced by those after it."""

_NAMED = re.compile(r"\benv:\s*[\"']?(\w+)")
_MODULES = {
    POSTGRES_VARIABLE: ("dagster_postgres", "cluster"),
    BROKER_VARIABLE: ("dagster_celery", "cluster"),
    RESULTS_VARIABLE: ("dagster_celery", "cluster"),
    IMAGE_VARIABLE: ("dagster_k8s", "k8s"),
    NAMESPACE_VARIABLE: ("dagster_k8s", "k8s"),
}
"""For each variable, the package that uses it, and the extra that installs that."""

_ONE = "    max_concurrent_runs: 1\n  pools:\n    granularity: run\n    default_limit: 1\n"
_SEVERAL = """\
    max_concurrent_runs: {nights} # store.nights_at_once of memstate.toml
    tag_concurrency_limits: # of a shard, one night at a time
      - key: dagster/partition
        value: {{applyLimitPerUniqueValue: true}}
        limit: 1
  pools:
    granularity: run
    default_limit: {nights}
"""
_ANY = re.compile(re.escape(_SEVERAL.format(nights="NIGHTS")).replace("NIGHTS", "[0-9]+"))


BASE_SETTINGS = _LOCAL_SETTINGS
"""The settings of one machine: the limits, retries, timeouts and retention that the others have as well."""


def dagster_settings(environ: Mapping[str, str], nights: int = 1) -> str:
    """The settings for a machine with these variables; workers and pods need the shared history, and all of their own.

    Args:
        environ: the variables.
        nights: how many nights may run at once (`store.nights_at_once`).
    """
    found = _of_machine(environ)
    return found if nights == 1 else found.replace(_ONE, _SEVERAL.format(nights=nights))


def replaces(kept: str, environ: Mapping[str, str], nights: int = 1) -> bool:
    """Whether the settings that are there were written by memstate, earlier than those for these values."""
    one, wanted = _ANY.sub(_ONE, kept), WRITTEN.index(_of_machine(environ))
    return one in WRITTEN[:wanted] or (one == WRITTEN[wanted] and kept != dagster_settings(environ, nights))


def _of_machine(environ: Mapping[str, str]) -> str:
    """The settings for one night at a time."""
    if not environ.get(POSTGRES_VARIABLE):
        return _LOCAL_SETTINGS
    if environ.get(IMAGE_VARIABLE) and environ.get(NAMESPACE_VARIABLE):
        return _KUBERNETES_SETTINGS
    with_workers = environ.get(BROKER_VARIABLE) and environ.get(RESULTS_VARIABLE)
    return _WORKER_SETTINGS if with_workers else _DATABASE_SETTINGS


def named(settings: str) -> list[str]:
    """The variables of these that settings name."""
    return [name for name in _NAMED.findall(settings) if name in _MODULES]


def missing(names: Iterable[str], environ: Mapping[str, str]) -> str | None:
    """What a machine lacks to use these variables: their values, or a package; None if nothing."""
    for name in names:
        if not environ.get(name):
            return f"the environment variable {name} is not set"
        package, extra = _MODULES[name]
        if importlib.util.find_spec(package) is None:
            return f"${name} needs the package {package}: pip install 'memstate[{extra}]'"
        if name == POSTGRES_VARIABLE and not environ[name].startswith(DRIVER):
            return f"${name} does not begin with {DRIVER}"
    return None
