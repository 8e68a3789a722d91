"""What Dagster's scheduler and queue take for the nights of one store, by its number of shards.

    python tests/benchmarks/scheduling.py HOME --shards 256 [--database postgresql+psycopg2://…]

The real schedule, in the real code server, evaluated and submitted by the real scheduler, then taken by the real queued
run coordinator, with Dagster's history in SQLite or in a database. Time is given: one day, so one tick. The launcher
starts nothing, since what a run takes from its start on is measured elsewhere (`starting.py`, `idle_nights.py`).
Processor time is that of this process, which is the daemon's part, and that of the code server.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import dagster as dg
import psutil
from dagster._core.launcher import LaunchRunContext, RunLauncher
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import ModuleTarget
from dagster._daemon.run_coordinator.queued_run_coordinator_daemon import QueuedRunCoordinatorDaemon
from dagster._scheduler.scheduler import launch_scheduled_runs
from dagster._serdes import ConfigurableClass, ConfigurableClassData

from memstate_core.night.erasure.run_database import POSTGRES_VARIABLE, SETTINGS_NAME
from memstate_core.run.store import open_store
from memstate_pipeline.assets.common import WRITER_POOL
from memstate_pipeline.definitions import build_defs
from memstate_pipeline.instance import dagster_home, dagster_instance
from memstate_pipeline.nights import NIGHTLY
from memstate_pipeline.schedules import nightly_schedule

CODE = "memstate_pipeline.definitions"
BEGIN = datetime(2026, 4, 6, tzinfo=UTC)
_SETTINGS = """[store]
shards = {shards}
nights_at_once = {shards}
[schedule]
cron = "0 3 * * *"
verify_cron = ""
retention_cron = ""
compaction_cron = ""
"""


class StartsNothing(RunLauncher, ConfigurableClass):
    """Takes a run from the queue and starts no process for it."""

    def __init__(self, inst_data: ConfigurableClassData | None = None) -> None:
        self._inst_data = inst_data
        super().__init__()

    @property
    def inst_data(self) -> ConfigurableClassData | None:
        return self._inst_data

    @classmethod
    def config_type(cls) -> dict[str, Any]:
        return {}

    @classmethod
    def from_config_value(cls, inst_data: ConfigurableClassData | None, config_value: Any) -> StartsNothing:
        return cls(inst_data=inst_data, **config_value)

    def launch_run(self, context: LaunchRunContext) -> None:
        """Does nothing."""

    def terminate(self, run_id: str) -> bool:  # noqa: ARG002
        """There is nothing to end."""
        return False


class Step(NamedTuple):
    """What one step took: its name, seconds, and processor seconds of this process and of the code server."""

    name: str
    wall: float
    daemon: float
    server: float


def timed(name: str, act: Callable[[], object]) -> Step:
    """Runs a step."""
    wall, daemon, server = time.perf_counter(), time.process_time(), server_seconds()
    act()
    return Step(name, time.perf_counter() - wall, time.process_time() - daemon, server_seconds() - server)


def server_seconds() -> float:
    """Processor seconds of the processes that this one has started and that go on."""
    times = (each.cpu_times() for each in psutil.Process().children(recursive=True))
    return sum(each.user + each.system for each in times)


def drained(steps: Iterable[Any]) -> None:
    """Runs an iteration of a daemon to its end; raises what went wrong in it."""
    problems = [str(each) for each in steps if each is not None]
    assert not problems, problems


def begun(home: Path, shards: int) -> None:
    """A home with so many shards whose launcher starts nothing."""
    home.mkdir(parents=True)
    (home / "memstate.toml").write_text(_SETTINGS.format(shards=shards))
    settings = dagster_home(open_store(home).home) / SETTINGS_NAME
    launcher = f"run_launcher:\n  module: {StartsNothing.__module__}\n  class: StartsNothing\n"
    settings.write_text(settings.read_text() + launcher)


def measured(home: Path, shards: int, database: str = "") -> list[Step]:
    """What each step takes; every shard has its run in the end.

    Args:
        home: the folder of the store, which is made.
        shards: how many it has.
        database: the address of an empty PostgreSQL database for Dagster's history; SQLite in the home without one.
    """
    given = {"MEMSTATE_HOME": str(home), "DAGSTER_HOME": str(home / "dagster"), POSTGRES_VARIABLE: database}
    with patch.dict(os.environ, given):
        begun(home, shards)
        with (
            dagster_instance(open_store(home).home) as instance,
            WorkspaceProcessContext(instance, ModuleTarget(CODE, None, None, None)) as served,
        ):
            return list(_steps(home, instance, served))


def _steps(home: Path, instance: dg.DagsterInstance, served: WorkspaceProcessContext) -> Iterable[Step]:
    logger = logging.getLogger("scheduling")
    instance.event_log_storage.initialize_concurrency_limit_to_default(WRITER_POOL)  # as after the first night
    schedule, code = nightly_schedule(open_store(home)), build_defs(home).get_repository_def()
    tick = dg.build_schedule_context(instance, scheduled_execution_time=BEGIN, repository_def=code)
    yield timed("evaluate the schedule", lambda: schedule.evaluate_tick(tick))
    drained(launch_scheduled_runs(served, logger, BEGIN, {}))  # from now on it is running
    day = launch_scheduled_runs(served, logger, BEGIN + timedelta(days=1), {})
    yield timed("submit its runs to the queue", lambda: drained(day))
    with QueuedRunCoordinatorDaemon(interval_seconds=5) as queue:
        yield timed("take them from the queue", lambda: drained(queue.run_iteration(served)))
    taken = instance.get_runs_count(dg.RunsFilter(job_name=NIGHTLY, statuses=[dg.DagsterRunStatus.STARTING]))
    assert taken == len(open_store(home).shards), taken


def report(steps: Sequence[Step], shards: int) -> str:
    """The table."""
    total = Step("all", *(sum(column) for column in list(zip(*steps, strict=True))[1:]))
    rows = (
        f"| {name} | {wall:.2f} | {daemon:.2f} | {server:.2f} | {1000 * (daemon + server) / shards:.1f} |"
        for name, wall, daemon, server in (*steps, total)
    )
    head = f"| {shards} shards | wall, s | CPU of the daemon, s | of the code server, s | CPU ms a run |"
    return "\n".join([head, "|---|---|---|---|---|", *rows])


def main(given: Sequence[str] | None = None) -> None:
    """Makes the store and prints the table."""
    parser = argparse.ArgumentParser(description="Measure Dagster's scheduler and queue with the nights of one store.")
    parser.add_argument("home", type=Path, help="a folder that does not exist")
    parser.add_argument("--shards", type=int, default=256)
    parser.add_argument("--database", default="", help="an empty PostgreSQL database; default: SQLite in the home")
    args = parser.parse_args(given)
    sys.stdout.write(report(measured(args.home, args.shards, args.database), args.shards) + "\n")


if __name__ == "__main__":
    from scheduling import main as begin  # Dagster loads the launcher by the name of its module

    begin()
