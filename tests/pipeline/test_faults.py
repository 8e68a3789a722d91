"""Faults around a store: a clock that jumps, a disk that is really full, another user."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from memstate_core.run.store import open_store
from memstate_core.state.current import served
from tests import warm
from tests.pipeline.conftest import NIGHT, Answer, clean_environment, run_memstate

pytestmark = pytest.mark.slow
NOBODY = 65534
AS_NOBODY = f"""
import os, sys
os.setgroups([])
os.setgid({NOBODY})
os.setuid({NOBODY})
from memstate_pipeline.cli.main import main
sys.argv[0] = "memstate"
main()
"""
as_root = pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root may do this")


def dump(folder: Path, number: int, rows: int = 1) -> Path:
    path = folder / f"{number}.jsonl"
    row = '{"title": "Yard %d", "observed_at": "2026-01-0%d", "fields": [{"name": "gate", "value": "%s"}]}\n'
    path.write_text("".join(row % (each, number, f"{each} open" * 20) for each in range(rows)))
    return path


def state(home: Path) -> tuple[list[str], int]:
    """The state hash that is served, and how many rows of evidence there are."""
    store = open_store(home, {})
    hashes = [snapshot.manifest.state_hash for snapshot in served(store.home, store.shards)]
    return hashes, store.ledger.count("evidence")


def test_a_clock_that_jumps_back_and_forth_stops_no_night(tmp_path: Path) -> None:
    """Rows that were ahead of the clock wait in the quarantine, and are taken when the clock is right again."""
    home = tmp_path / "home"
    for number, now in enumerate((NIGHT, "2019-01-01T00:00:00Z", "2051-01-01T00:00:00Z", NIGHT), start=1):
        assert run_memstate(home, "import", str(dump(tmp_path, number)), "--now", now).code == 0
        answer = run_memstate(home, "maintain", "--now", now, "--json")
        assert (answer.code, answer.document["snapshot"]) == (0, f"s0/{number}"), answer.stderr
        verified = run_memstate(home, "verify")
        assert verified.code == 0, verified.stdout + verified.stderr
    assert state(home)[1] == 3, "a row from years ahead of the clock is refused"
    assert run_memstate(home, "quarantine", "replay", "--all", "--now", NIGHT).code == 0
    assert state(home)[1] == 4


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system in memory, with room for a run."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1g", "none", str(folder)], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("this system lets nobody mount")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(disk: Path, left: int) -> Path:
    """Fills a disk except for some bytes."""
    ballast = disk / "ballast"
    with ballast.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, shutil.disk_usage(disk).free - left)
    return ballast


@as_root
def test_on_a_full_disk_nothing_is_half_done_and_the_same_command_completes_later(
    small_disk: Path, tmp_path: Path
) -> None:
    home = small_disk / "home"
    assert run_memstate(home, "import", str(dump(tmp_path, 1)), "--now", NIGHT).code == 0
    assert run_memstate(home, "maintain", "--now", NIGHT).code == 0
    refused = 0
    for number, kib in enumerate((0, 4, 16, 40, 80, 160), start=2):
        before, path = state(home), dump(tmp_path, number, rows=30 * number)
        ballast = fill(small_disk, 1024 * kib)
        commands = [("import", str(path)), ("maintain",), ("pin", "Yard 0")]
        for command in commands:
            answer = run_memstate(home, *command, "--now", NIGHT, "--json")
            assert "Traceback" not in answer.stdout + answer.stderr
            assert answer.code in (0, 1), (command, kib, answer)
            refused += answer.code
            if answer.code:
                assert json.loads(answer.stdout)["error"]["message"]
        assert run_memstate(home, "query", "Yard").code == 0
        assert state(home)[0] == before[0]
        assert state(home)[1] - before[1] in (0, 30 * number)
        ballast.unlink()
        assert run_memstate(home, "import", str(path), "--now", NIGHT).code == 0
        assert state(home)[1] - before[1] == 30 * number
    assert refused >= 6
    assert run_memstate(home, "maintain", "--now", NIGHT).code == 0
    verified = run_memstate(home, "verify")
    assert verified.code == 0, verified.stdout + verified.stderr


@as_root
def test_a_full_disk_is_named_and_no_history_is_called_damaged(small_disk: Path, tmp_path: Path) -> None:
    home = small_disk / "home"
    assert run_memstate(home, "import", str(dump(tmp_path, 1)), "--now", NIGHT).code == 0
    assert run_memstate(home, "maintain", "--now", NIGHT).code == 0
    ballast = fill(small_disk, 0)
    for command in (("maintain",), ("erase", "--scope", "global", "--yes", "--why", "x"), ("retention",)):
        answer = run_memstate(home, *command, "--now", NIGHT)
        assert answer.code == 1
        assert "Free some" in answer.stderr, (command, answer)
        assert "away" not in answer.stderr, (command, answer)
    examined = run_memstate(home, "doctor")
    assert examined.code == 1
    assert "move" not in examined.stdout, examined.stdout
    ballast.unlink()
    assert run_memstate(home, "maintain", "--now", NIGHT).code == 0


@as_root
def test_a_record_of_runs_that_cannot_be_written_is_named(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("shared")
    home = folder / "home"
    assert run_memstate(home, "import", str(dump(folder, 1)), "--now", NIGHT).code == 0
    assert run_memstate(home, "maintain", "--now", NIGHT).code == 0
    for parent in (folder, *folder.parents):
        if not parent.stat().st_mode & 0o001:
            parent.chmod(parent.stat().st_mode | 0o011)
    for path in (home, *home.rglob("*")):
        os.chown(path, NOBODY, NOBODY)
    for path in (home / "dagster", *(home / "dagster").rglob("*")):
        path.chmod(path.stat().st_mode & ~0o222)
    answer = _as_nobody(home, "maintain")
    assert answer.code == 1
    assert f"memstate: {home / 'dagster'}: Permission denied. Check the permissions" in answer.stderr
    examined = _as_nobody(home, "doctor")
    assert examined.code == 1
    assert "Permission denied, so no night" in examined.stdout


@as_root
def test_another_user_is_refused_with_a_sentence_and_changes_nothing(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Homes are their owner's alone; so are the files in a home whose folder somebody opened to all."""
    folder = tmp_path_factory.mktemp("shared")
    home, path = folder / "home", dump(folder, 1)
    assert run_memstate(home, "import", str(path), "--now", NIGHT).code == 0
    assert run_memstate(home, "maintain", "--now", NIGHT).code == 0
    before = state(home)
    for parent in (folder, *folder.parents):
        if not parent.stat().st_mode & 0o001:
            parent.chmod(parent.stat().st_mode | 0o011)
    path.chmod(0o644)
    for mode in (0o700, 0o777):
        home.chmod(mode)
        for command in (("status",), ("query", "Yard"), ("import", str(path)), ("maintain",), ("pin", "Yard 0")):
            answer = _as_nobody(home, *command)
            assert answer.code not in (0, -1), (mode, command, answer)
            assert "Traceback" not in answer.stdout + answer.stderr
            assert f"memstate: {home}/" in answer.stderr, (mode, command, answer)
            assert "Permission denied. Check the permissions, or pass another --home DIR." in answer.stderr
    home.chmod(0o700)
    assert state(home) == before
    assert run_memstate(home, "maintain", "--now", NIGHT).code == 0
    assert run_memstate(home, "verify").code == 0


def _as_nobody(home: Path, *arguments: str) -> Answer:
    done = warm.run(["-c", AS_NOBODY, "--home", str(home), *arguments], clean_environment())
    return Answer(done.returncode, done.stdout, done.stderr)
