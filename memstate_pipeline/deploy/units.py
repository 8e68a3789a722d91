"""The units of systemd: the nightly run with its timer, the UI, and the query API."""

from __future__ import annotations

from memstate_pipeline.deploy.machine import Machine, systemd_command, systemd_path

_SERVICE = """\
# {head}
[Unit]
Description={description}
After=network.target

[Service]
Type={type}
User={user}
ExecStart={command}
{more}
UMask=0077
NoNewPrivileges=yes
PrivateTmp=yes
ProtectSystem=full
ReadWritePaths={home}
"""
_TIMER = """\
# Starts memstate-maintain.service. Leave it off if memstate-ui.service runs: its schedule starts the same nights.
[Unit]
Description=Nightly run of memstate

[Timer]
OnCalendar={calendar}
Persistent=true

[Install]
WantedBy=timers.target
"""
_INSTALL = "\n[Install]\nWantedBy=multi-user.target\n"
_RESTART = "Restart=on-failure\nRestartSec=5\nTimeoutStopSec=60"


def units(machine: Machine) -> dict[str, str]:
    """The units by file name."""
    service = "memstate-{}.service".format
    return {
        service("maintain"): _service(
            machine, "One night. Started by memstate-maintain.timer.", "Nightly run of memstate",
            "oneshot", ["maintain"], "TimeoutStartSec=infinity",
        ),
        "memstate-maintain.timer": _TIMER.format(calendar=_calendar(machine)),
        service("ui"): _service(
            machine, "Dagster's web server and daemon; runs the nights and imports the inbox between them.",
            "Dagster of memstate", "exec", ["ui", "--port", "3000", "--log-format", "json"], _RESTART,
        ) + _INSTALL,
        service("serve"): _service(
            machine, "The query API. For other machines: create a key with `memstate keys add`, then set --host.",
            "Query API of memstate", "exec", ["serve"], _RESTART,
        ) + _INSTALL,
    }  # fmt: skip


def _service(machine: Machine, head: str, description: str, type_: str, arguments: list[str], more: str) -> str:
    return _SERVICE.format(
        head=head,
        description=description,
        type=type_,
        user=machine.user,
        command=systemd_command(machine.command(*arguments)),
        more=more,
        home=systemd_path(machine.home),
    )


def _calendar(machine: Machine) -> str:
    """The time of the nightly run; 02:00 where the schedule is none that comes once a day."""
    hour, minute = machine.daily or (2, 0)
    return f"*-*-* {hour:02}:{minute:02}:00 {machine.time_zone}"
