"""The `ui` command: Dagster's web UI and daemon on this store."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from memstate_pipeline.cli.output import Json, note, show
from memstate_pipeline.cli.priority import lower_priority


def ui(
    context: typer.Context,
    host: Annotated[str, typer.Option(metavar="HOST", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="N", help="Port to listen on.")] = 3000,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the address without starting anything.")] = False,
    as_json: Annotated[bool, Json] = False,
) -> None:
    """Start Dagster's web UI on this store.

    The nightly schedule and the inbox sensor are on.
    """
    from memstate_core.run.store import HOME_VARIABLE
    from memstate_pipeline.instance import DAGSTER_VARIABLE, dagster_home

    store = context.obj.store
    environment = {HOME_VARIABLE: str(store.home.root), DAGSTER_VARIABLE: str(dagster_home(store.home))}
    module = ["-m", "memstate_pipeline.definitions"]
    url = f"http://{host}:{port}"
    command = [sys.executable, "-m", "dagster", "dev", *module, "--host", host, "--port", str(port)]
    show({"url": url, "command": command, "environment": environment}, as_json, lambda: [url])
    if not dry_run:
        note("Press Ctrl-C to stop.")
        lower_priority(store)
        os.execve(sys.executable, command, os.environ | environment)
