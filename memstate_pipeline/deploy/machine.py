"""What the files of a machine have to name, quoted as each format wants it."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

_DAILY = re.compile(r"(\d{1,2}) (\d{1,2}) \* \* \*")


@dataclass(frozen=True)
class Machine:
    """The machine that runs a store.

    Attributes:
        program: the `memstate` command.
        home: the folder of the store.
        user: who runs it.
        cron: when the nightly run starts, a cron expression of five fields.
        time_zone: its time zone, an IANA name.
    """

    program: Path
    home: Path
    user: str
    cron: str
    time_zone: str

    def command(self, *arguments: str) -> list[str]:
        """A command on the store, as the arguments of a process."""
        return [str(self.program), "--home", str(self.home), *arguments]

    @property
    def daily(self) -> tuple[int, int] | None:
        """Hour and minute of the nightly run, if it starts once a day at a fixed time."""
        found = _DAILY.fullmatch(" ".join(self.cron.split()))
        return (int(found[2]), int(found[1])) if found else None


def systemd_command(arguments: list[str]) -> str:
    """A command as the value of `ExecStart`: `%` and, after the program, `$` have meanings of their own there."""
    program, *rest = map(_systemd_quoted, arguments)
    return " ".join([program, *(argument.replace("$", "$$") for argument in rest)])


def systemd_path(path: Path) -> str:
    """A path as an element of a list of paths in a unit."""
    return _systemd_quoted(str(path))


def cron_command(arguments: list[str]) -> str:
    """A command as a line of a crontab, in which `%` ends the command."""
    return shlex.join(arguments).replace("%", "\\%")


def _systemd_quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"' if re.search(r"[^\w./%:@=+,-]", text) else escaped
