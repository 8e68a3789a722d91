"""Commands that only read work in a home that nobody can write, such as a read-only mount or a full disk.

The home is mounted read-only in a mount namespace of its own; where the system allows none, the tests are skipped.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from memstate_core.model.text import parse_moment
from memstate_core.run.store import open_store
from tests import warm
from tests.core.night.older_merges import merge_as_before
from tests.pipeline.cli.small_store import LATER, ids
from tests.pipeline.conftest import clean_environment

READ_ONLY = """
import ctypes, os, subprocess, sys

NEW_MOUNTS, NEW_USERS = 0x00020000, 0x10000000
MOUNT = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && ! touch "$0/probe" 2>/dev/null'
home, user = sys.argv[2], os.getuid()
assert ctypes.CDLL(None, use_errno=True).unshare(NEW_MOUNTS | NEW_USERS) == 0, os.strerror(ctypes.get_errno())
with open("/proc/self/uid_map", "w") as file:
    file.write(f"0 {user} 1")
subprocess.run(["sh", "-c", MOUNT, home], check=True)
"""
COMMAND = """
from memstate_pipeline.cli.main import main
sys.argv[0] = "memstate"
main()
"""
READING = (
    ("eval", "{home}/marked.jsonl"), ("status",), ("query", "ferry"), ("context", "ferry", "--budget", "300"),
    ("export",), ("merges",), ("review",), ("confirm",), ("doctor",), ("verify",), ("topic", "Old Ferry Yard"),
    ("report",), ("quarantine", "list"), ("keys", "list"), ("topic", "Old Ferry Yard", "--as-of", "2026-04-05"),
)  # fmt: skip


def read_only(home: Path, script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return warm.run(["-c", READ_ONLY + script, "--home", str(home), *arguments], clean_environment())


@pytest.fixture
def home(small_home: Path, tmp_path: Path) -> Path:
    copy = Path(shutil.copytree(small_home, tmp_path / "home"))
    if read_only(copy, "").returncode != 0:
        pytest.skip("this system lets nobody mount")
    shutil.rmtree(copy / "cache")
    (copy / "marked.jsonl").write_text('{"q": "ferry", "observations": ["yard/2026-04-05"]}\n')
    return copy


@pytest.mark.slow
@pytest.mark.parametrize("command", READING, ids=" ".join)
def test_it_reads_without_writing(home: Path, command: tuple[str, ...]) -> None:
    """`doctor` took the lock, and failed."""
    done = read_only(home, COMMAND, *(part.format(home=home) for part in command), "--json")
    if command[0] == "doctor":
        failed = [finding["name"] for finding in json.loads(done.stdout) if not finding["ok"]]
        assert set(failed) <= {"home", "disk"}
    else:
        assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_it_judges_merges_again_without_writing(home: Path) -> None:
    topics = ids(open_store(home))
    merge_as_before(open_store(home), [(topics["Serviceberry"], topics["Budget"])], parse_moment(LATER))
    done = read_only(home, COMMAND, "review", "--merged", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["refused"] == 1
