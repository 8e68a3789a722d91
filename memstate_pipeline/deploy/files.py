"""All files of a machine, by name."""

from __future__ import annotations

import plistlib

from memstate_pipeline.deploy.containers import container_files
from memstate_pipeline.deploy.helm import helm_files
from memstate_pipeline.deploy.kubernetes import cluster_files
from memstate_pipeline.deploy.kubernetes_runs import run_files
from memstate_pipeline.deploy.machine import Machine, cron_command
from memstate_pipeline.deploy.units import units
from memstate_pipeline.deploy.workers import worker_files

_CRONTAB = """\
# A line for `crontab -e`, where neither the UI nor a timer runs the nights.
CRON_TZ={time_zone}
{cron} {command}
"""


def machine_files(machine: Machine) -> dict[str, str]:
    """The units of systemd, the agent of launchd, the crontab, the containers, and the files for a cluster."""
    crontab = _CRONTAB.format(
        time_zone=machine.time_zone, cron=machine.cron, command=cron_command(machine.command("maintain"))
    )
    return {
        **units(machine),
        "memstate.maintain.plist": _agent(machine),
        "crontab": crontab,
        **container_files(),
        **worker_files(),
        **cluster_files(),
        **run_files(),
        **helm_files(),
    }


def _agent(machine: Machine) -> str:
    """An agent for launchd, which starts it in the machine's time zone."""
    hour, minute = machine.daily or (2, 0)
    log = str(machine.home / "maintain.log")
    document = {
        "Label": "memstate.maintain",
        "ProgramArguments": machine.command("maintain"),
        "StartCalendarInterval": {"Hour": hour, "Minute": minute},
        "StandardErrorPath": log,
        "StandardOutPath": log,
        "Umask": 0o077,
    }
    return plistlib.dumps(document, sort_keys=False).decode()
