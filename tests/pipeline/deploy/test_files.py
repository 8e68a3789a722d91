"""The files of `memstate init` run the commands that they name, also where paths have spaces or special letters."""

from __future__ import annotations

import plistlib
import shlex
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from memstate_core.policy.settings import FILE_NAME, Settings, load_settings
from memstate_core.policy.template import keys, sections
from memstate_pipeline.deploy.files import machine_files
from memstate_pipeline.deploy.machine import Machine
from tests.pipeline.conftest import run_memstate

NAMES = ("plain", "with space", "50% off", "$HOME", 'a "quote"', "Größe", "back\\slash", "it's;#")


def machine(folder: Path, name: str, cron: str = "30 4 * * *", time_zone: str = "Europe/Berlin") -> Machine:
    """A machine with odd letters in both paths; systemd allows no quotes in that of a program."""
    program = folder / "50% of $HOME in Größe" / "memstate"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    return Machine(program, folder / name / "home", "root", cron, time_zone)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
@pytest.mark.parametrize("name", NAMES)
def test_systemd_finds_nothing_wrong_with_the_units(tmp_path: Path, name: str) -> None:
    files = {
        name: text for name, text in machine_files(machine(tmp_path, name)).items() if name.startswith("memstate-")
    }
    units = tmp_path / "units"
    units.mkdir()
    for unit, text in files.items():
        (units / unit).write_text(text)
    checked = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *(str(units / unit) for unit in files)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert [line for line in checked.stderr.splitlines() if "memstate" in line] == []


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
@pytest.mark.parametrize(
    ("cron", "calendar"),
    [("30 4 * * *", "*-*-* 04:30:00 Europe/Berlin"), ("*/15 * * * *", "*-*-* 02:00:00 Europe/Berlin")],
)
def test_the_timer_starts_at_the_time_of_the_schedule(tmp_path: Path, cron: str, calendar: str) -> None:
    timer = machine_files(machine(tmp_path, "plain", cron))["memstate-maintain.timer"]
    assert f"OnCalendar={calendar}\n" in timer
    subprocess.run(["systemd-analyze", "calendar", calendar], check=True, capture_output=True)


@pytest.mark.parametrize("name", NAMES)
def test_cron_and_launchd_run_the_nightly_command(tmp_path: Path, name: str) -> None:
    named = machine(tmp_path, name)
    files = machine_files(named)
    line = files["crontab"].splitlines()[-1]
    assert line.startswith("30 4 * * * ")
    command = line.removeprefix("30 4 * * * ")
    assert shlex.split(command.replace("\\%", "%")) == named.command("maintain")
    assert command.count("%") == command.count("\\%")
    agent = plistlib.loads(files["memstate.maintain.plist"].encode())
    assert agent["ProgramArguments"] == named.command("maintain")
    assert agent["StartCalendarInterval"] == {"Hour": 4, "Minute": 30}


def test_init_writes_what_is_not_there_and_keeps_the_rest(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / FILE_NAME).write_text('[schedule]\ncron = "15 3 * * *"\n')
    first = run_memstate(home, "init", "--json").document
    assert first["kept"] == [FILE_NAME]
    assert "dagster/dagster.yaml" in first["written"]
    assert "OnCalendar=*-*-* 03:15:00 UTC" in (home / "deploy" / "memstate-maintain.timer").read_text()
    (home / "deploy" / "crontab").write_text("mine")
    second = run_memstate(home, "init", "--json").document
    assert (second["written"], len(second["kept"])) == ([], len(first["written"]) + 1)
    assert (home / "deploy" / "crontab").read_text() == "mine"
    assert {stat.S_IMODE(path.stat().st_mode) for path in home.rglob("*") if path.is_file()} <= {0o600, 0o644}


def test_the_written_settings_change_nothing_and_name_every_key(tmp_path: Path) -> None:
    assert run_memstate(tmp_path / "home", "init").code == 0
    assert load_settings(tmp_path / "home", {}) == Settings()
    text = (tmp_path / "home" / FILE_NAME).read_text()
    uncommented = text.replace("\n# ", "\n")
    for section, model in sections():
        assert f"[{section}]" in text
        assert all(f"\n{key.name} = {key.default}\n" in uncommented for key in keys(model))
