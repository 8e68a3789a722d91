"""The `ui` command: Dagster's web UI and daemon on this store."""

from __future__ import annotations

import os
import socket
import sys
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from memstate_pipeline.cli.shared.errors import Failure, report
from memstate_pipeline.cli.shared.output import Json, note, show
from memstate_pipeline.cli.shared.priority import lower_priority

FIRST_PORT, PORTS = 3000, 100
"""Without --port, the first free one of these is taken."""


class LogFormat(StrEnum):
    """How the processes write their logs."""

    TEXT = "text"
    JSON = "json"


def ui(
    context: typer.Context,
    host: Annotated[str, typer.Option(metavar="HOST", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int | None, typer.Option(metavar="N", help="Port to listen on. Default: the first free one from 3000 on.")
    ] = None,
    log_format: Annotated[LogFormat, typer.Option(help="Format of the logs on stderr.")] = LogFormat.TEXT,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the address without starting anything.")] = False,
    as_json: Annotated[bool, Json] = False,
) -> None:
    """Start Dagster's web UI and daemon on this store.

    The nightly schedule and the sensors are on. One runs at a time on a store.
    """
    from memstate_core.model.errors import StoreLocked
    from memstate_core.run.home_path import HOME_VARIABLE
    from memstate_core.state.lock import exclusive
    from memstate_pipeline.dead_runs import end_dead_runs
    from memstate_pipeline.instance import DAGSTER_VARIABLE, dagster_home, dagster_instance
    from memstate_pipeline.processes import run_together

    store = context.obj.begun_store
    folder = dagster_home(store.home)
    environment = {HOME_VARIABLE: str(store.home.root), DAGSTER_VARIABLE: str(folder)}
    free = _free_port(host, port)
    if free is None:
        wanted = f"port {port}" if port is not None else f"any port from {FIRST_PORT} to {FIRST_PORT + PORTS - 1}"
        report(Failure("OSError", f"cannot listen on {host}, {wanted}; choose another --host or --port"), as_json)
        raise typer.Exit(1)
    url, commands = _url(host, free), _commands(host, free, log_format)
    document = {"url": url, "commands": commands, "environment": environment}
    if dry_run:
        show(document, as_json, lambda: [url])
        return
    try:
        with exclusive(folder / "ui.lock", f"{url}, process {os.getpid()}"):
            show(document, as_json, lambda: [url])
            note("Press Ctrl-C to stop.")
            lower_priority(store)
            # Opened first by one process, since two would make the databases at once, which ends one of them.
            with dagster_instance(store.home) as instance:
                for run_id in end_dead_runs(store, instance, datetime.now(UTC)):
                    note(f"Run {run_id} is marked as failed, since its process is gone.")
            ended = run_together(commands, os.environ | environment)
    except StoreLocked as error:
        message = f"the UI of this store runs already, at {error.facts['holder']}; open that one, or end it first"
        report(Failure("StoreLocked", message, error.exit_code, error.facts), as_json)
        raise typer.Exit(error.exit_code) from None
    report(Failure("ProcessEnded", f"the {ended.name} ended with code {ended.code}, so the UI stopped"), as_json)
    raise typer.Exit(1)


def _commands(host: str, port: int, log_format: LogFormat) -> dict[str, list[str]]:
    """The web server and the daemon, which runs schedules, sensors and the queue of runs."""
    scripts = Path(sys.executable).parent
    log = ["--log-format", "json" if log_format is LogFormat.JSON else "colored"]
    module = ["-m", "memstate_pipeline.definitions"]
    address = ["--host", host, "--port", str(port)]
    return {
        "web server": [str(scripts / "dagster-webserver"), *module, *address, *log],
        "daemon": [str(scripts / "dagster-daemon"), "run", *module, *log],
    }


def _free_port(host: str, port: int | None) -> int | None:
    """The wanted port if it is free, or without one the first free port; None if there is none."""
    candidates = range(FIRST_PORT, FIRST_PORT + PORTS) if port is None else [port]
    return next((found for each in candidates if (found := _bindable(host, each)) is not None), None)


def _bindable(host: str, port: int) -> int | None:
    """The port, or for 0 the one that the system chose; None if it cannot be listened on."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.create_server((host, port), family=family) as probe:
            return int(probe.getsockname()[1])
    except (OSError, OverflowError):
        return None


def _url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
