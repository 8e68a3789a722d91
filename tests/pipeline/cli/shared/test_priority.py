"""Maintenance runs at the CPU priority of the settings."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests import warm

pytestmark = pytest.mark.slow

STEP = """
import os, sys
from pathlib import Path
from memstate_core.run.store import open_store
from memstate_pipeline.cli.shared.priority import lower_priority
lower_priority(open_store(Path(sys.argv[1])))
lower_priority(open_store(Path(sys.argv[1])))
print(os.nice(0))
"""
REPORTING = """
import os, sys
from memstate_pipeline.cli.main import main
sys.argv[1:] = ["--home", sys.argv[1], *sys.argv[2:]]
try:
    main()
finally:
    print(os.nice(0), file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("settings", "expected"), [("", 5), ("[store]\nniceness = 9", 9), ("[store]\nniceness = 0", 0)]
)
def test_priority_is_lowered_once_to_what_is_set(tmp_path: Path, settings: str, expected: int) -> None:
    (tmp_path / "memstate.toml").write_text(settings)
    done = warm.run(["-c", STEP, str(tmp_path)], os.environ)
    assert int(done.stdout) == max(expected, os.nice(0))


def test_the_nightly_commands_lower_their_priority(tmp_path: Path) -> None:
    """Each process reports its own priority at exit."""
    plan = str(tmp_path / "none.json")
    for command, expected in (["maintain", "--json"], 5), (["apply", plan], 5), (["status"], 0):
        done = warm.run(["-c", REPORTING, str(tmp_path), *command], os.environ)
        assert int(done.stderr.split()[-1]) == max(expected, os.nice(0)), done.stderr
