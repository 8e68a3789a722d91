"""The `init` command: the settings of a store, and files with which a machine or containers run it."""

from __future__ import annotations

import getpass
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from memstate_pipeline.cli.shared.output import Json, show


def init(context: typer.Context, as_json: Annotated[bool, Json] = False) -> None:
    """Write commented settings and service units.

    The units, for systemd, launchd and cron, are in the folder deploy of the home and name this installation. Beside
    them are a Dockerfile, files for Compose, manifests for Kubernetes and values for Dagster's Helm chart. A file
    that exists is kept, except settings of Dagster that nobody edited and that lack what the environment names.
    """
    from memstate_core.night.erasure.run_database import SETTINGS_NAME
    from memstate_core.policy.settings import FILE_NAME
    from memstate_core.policy.template import settings_template
    from memstate_core.state.files import make_folder, replace_file
    from memstate_pipeline.deploy.files import machine_files
    from memstate_pipeline.deploy.machine import Machine
    from memstate_pipeline.instance_settings import dagster_settings, replaces

    store = context.obj.store
    home, schedule, nights = store.home, store.settings.schedule, store.settings.store.nights_at_once
    program = Path(sys.executable).with_name("memstate")
    machine = Machine(program, home.root, getpass.getuser(), schedule.cron, schedule.time_zone)
    of_dagster = home.dagster / SETTINGS_NAME
    files = {home.root / FILE_NAME: settings_template(), of_dagster: dagster_settings(os.environ, nights)}
    files |= {home.deploy / name: content for name, content in machine_files(machine).items()}
    for folder in (home.root, home.inbox, home.dagster, home.deploy):
        make_folder(folder)
    is_old = of_dagster.exists() and replaces(of_dagster.read_text(), os.environ, nights)
    written = [path for path in files if not path.exists() or (is_old and path == of_dagster)]
    for path in written:
        replace_file(path, files[path].encode())
    document = {
        "home": str(home.root),
        "written": [str(path.relative_to(home.root)) for path in written],
        "kept": [str(path.relative_to(home.root)) for path in files if path not in written],
    }
    show(document, as_json, lambda: _lines(document, program))


def _lines(document: Mapping[str, Any], program: Path) -> Iterator[str]:
    yield document["home"]
    yield from (f"  wrote {name}" for name in document["written"])
    yield from (f"  kept {name}, which was there" for name in document["kept"])
    if not program.exists():
        yield f"the files in deploy name {program}, which does not exist: set the path of the memstate command"
    yield "systemd: sudo cp deploy/memstate-* /etc/systemd/system/, then enable memstate-ui.service or the timer"
