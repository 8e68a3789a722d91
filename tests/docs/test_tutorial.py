"""The tutorial's transcript matches the output of the commands."""

from __future__ import annotations

import os
import shlex
import shutil
from pathlib import Path

import pytest

from tests.docs.conftest import PAGES
from tests.docs.shell import shows, steps
from tests.warm import run

pytestmark = pytest.mark.slow
TUTORIAL = PAGES / "tutorial"


def test_the_tutorial_prints_what_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(TUTORIAL / "conversations.json", tmp_path)
    monkeypatch.chdir(tmp_path)
    environment = dict(os.environ) | {"MEMSTATE_HOME": str(tmp_path / "my-memory"), "COLUMNS": "120"}
    transcript = steps(TUTORIAL / "index.md")
    assert len(transcript) >= 6
    for command, shown in transcript:
        program, *arguments = shlex.split(command)
        assert program == "memstate"
        done = run(["-m", "memstate_pipeline", *arguments], environment)
        assert done.returncode == 0, done.stderr
        shows(done.stdout, shown, command)
