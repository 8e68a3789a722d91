"""Maintenance runs at the CPU priority of the settings."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

STEP = """
import os, sys
from pathlib import Path
from memstate_core.run.store import open_store
from memstate_pipeline.cli.priority import lower_priority
lower_priority(open_store(Path(sys.argv[1])))
lower_priority(open_store(Path(sys.argv[1])))
print(os.nice(0))
"""


@pytest.mark.parametrize(
    ("settings", "expected"), [("", 5), ("[store]\nniceness = 9", 9), ("[store]\nniceness = 0", 0)]
)
def test_priority_is_lowered_once_to_what_is_set(tmp_path: Path, settings: str, expected: int) -> None:
    (tmp_path / "memstate.toml").write_text(settings)
    done = subprocess.run(
        [sys.executable, "-c", STEP, str(tmp_path)], capture_output=True, text=True, check=True, timeout=60
    )
    assert int(done.stdout) == max(expected, os.nice(0))


def test_the_nightly_commands_lower_their_priority(tmp_path: Path) -> None:
    """Each process reports its own priority at exit."""
    reporting = "import atexit, os, sys; atexit.register(lambda: print(os.nice(0), file=sys.stderr)); "
    run = (
        reporting
        + "sys.argv[1:] = ['--home', sys.argv[1], *sys.argv[2:]]; from memstate_pipeline.cli.main import main; main()"
    )
    plan = str(tmp_path / "none.json")
    for command, expected in (["maintain", "--json"], 5), (["apply", plan], 5), (["status"], 0):
        done = subprocess.run(
            [sys.executable, "-c", run, str(tmp_path), *command],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert int(done.stderr.split()[-1]) == max(expected, os.nice(0)), done.stderr
