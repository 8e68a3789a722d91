"""Commands that only read work in a home that nobody can write, such as a read-only mount or a full disk.

The home is mounted read-only in a mount namespace of its own; where the system allows none, the tests are skipped.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from memstate_core.model.text import parse_moment
from memstate_core.run.store import open_store
from tests.core.night.older_merges import merge_as_before
from tests.pipeline.cli.small_store import LATER, ids
from tests.pipeline.conftest import clean_environment

MOUNT = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && ! touch "$0/probe" 2>/dev/null && exec "$@"'
READING = (
    ("status",), ("query", "ferry"), ("context", "ferry", "--budget", "300"), ("export",), ("merges",), ("review",),
    ("confirm",), ("doctor",), ("verify",),
)  # fmt: skip


def read_only(home: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["unshare", "--map-root-user", "--mount", "sh", "-c", MOUNT, str(home), *command],
        capture_output=True, text=True, env=clean_environment(), check=False,
    )  # fmt: skip


@pytest.fixture
def home(small_home: Path, tmp_path: Path) -> Path:
    copy = Path(shutil.copytree(small_home, tmp_path / "home"))
    if shutil.which("unshare") is None or read_only(copy, "true").returncode != 0:
        pytest.skip("this system lets nobody mount")
    shutil.rmtree(copy / "cache")
    return copy


@pytest.mark.slow
@pytest.mark.parametrize("command", READING, ids=lambda command: command[0])
def test_it_reads_without_writing(home: Path, command: tuple[str, ...]) -> None:
    """`doctor` took the lock, and failed."""
    done = read_only(home, sys.executable, "-m", "memstate_pipeline", "--home", str(home), *command, "--json")
    if command[0] == "doctor":
        failed = [finding["name"] for finding in json.loads(done.stdout) if not finding["ok"]]
        assert set(failed) <= {"home", "disk"}
    else:
        assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_it_judges_merges_again_without_writing(home: Path) -> None:
    topics = ids(open_store(home))
    merge_as_before(open_store(home), [(topics["Serviceberry"], topics["Budget"])], parse_moment(LATER))
    command = [sys.executable, "-m", "memstate_pipeline", "--home", str(home), "review", "--merged", "--json"]
    done = read_only(home, *command)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["refused"] == 1
