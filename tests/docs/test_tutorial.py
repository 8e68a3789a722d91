"""The tutorial's transcript matches the output of the commands."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from pathlib import Path

import pytest

from tests.docs.conftest import PAGES
from tests.warm import run

pytestmark = pytest.mark.slow
TUTORIAL = PAGES / "tutorial"


def transcript() -> list[tuple[str, list[str]]]:
    """Each command of the page's console blocks, with the lines that it shows."""
    steps: list[tuple[str, list[str]]] = []
    for block in re.findall(r"^```console\n(.*?)^```", (TUTORIAL / "index.md").read_text(), re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            if line.startswith("$ "):
                steps.append((line.removeprefix("$ "), []))
            else:
                steps[-1][1].append(line)
    return steps


def test_the_tutorial_prints_what_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(TUTORIAL / "conversations.json", tmp_path)
    monkeypatch.chdir(tmp_path)
    environment = dict(os.environ) | {"MEMSTATE_HOME": str(tmp_path / "my-memory"), "COLUMNS": "120"}
    steps = transcript()
    assert len(steps) >= 6
    for command, shown in steps:
        program, *arguments = shlex.split(command)
        assert program == "memstate"
        done = run(["-m", "memstate_pipeline", *arguments], environment)
        assert done.returncode == 0, done.stderr
        _assert_shows(" ".join(done.stdout.split()), shown, command)


def _assert_shows(printed: str, shown: list[str], command: str) -> None:
    """Each shown line occurs, in order; `…` matches anything, and white space may wrap."""
    place = 0
    for line in shown:
        pattern = ".*?".join(re.escape(" ".join(part.split())) for part in line.strip().split("…"))
        found = re.compile(pattern).search(printed, place)
        assert found, f"{command}: {line!r} is not in {printed[place:][:2000]!r}"
        place = found.end()
