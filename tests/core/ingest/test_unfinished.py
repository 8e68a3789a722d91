"""Files that are still being written wait, and rows that a late writer adds are read."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memstate_core.ingest import inbox
from memstate_core.ingest.moved_files import KEPT_SECONDS
from memstate_core.ingest.report import ImportReport
from memstate_core.ingest.unfinished import WallClock, is_open_for_writing
from memstate_core.policy.settings import Settings
from memstate_core.state.home import Home
from memstate_core.state.ledger.ledger import Ledger

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="leases on files are a feature of Linux")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path)
    home.inbox.mkdir()
    return home


class Watch:
    """A clock some time ahead of the machine's, whose waits are recorded and end at once."""

    def __init__(self, ahead: float = 0.0) -> None:
        self.ahead = ahead
        self.waits: list[float] = []
        self.clock = WallClock(lambda: time.time() + self.ahead, self.waits.append)


def read(home: Home, watch: Watch) -> ImportReport:
    clock = watch.clock
    return inbox.import_inbox(home, Ledger(home.ledger), Settings(), now=NOW, run_id="r", clock=clock)


def rows(*texts: str) -> str:
    return "".join(json.dumps({"text": text}) + "\n" for text in texts)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.is_file()) if folder.exists() else []


def test_an_import_waits_for_a_file_that_changed_just_before(home: Home) -> None:
    (home.inbox / "a.jsonl").write_text(rows("a"))
    watch = Watch()
    assert read(home, watch).accepted == 1
    assert watch.waits == [2.0]


@pytest.mark.parametrize("name", ["settled.jsonl", f"api-{10**18:020}-{'0' * 16}.jsonl"])
def test_complete_files_need_no_wait(home: Home, name: str) -> None:
    """Those that have not changed, and those that a server wrote."""
    (home.inbox / name).write_text(rows("a"))
    watch = Watch(60 if name.startswith("settled") else 0)
    assert read(home, watch).accepted == 1
    assert watch.waits == []


def test_a_file_that_changes_in_the_wait_stays(home: Home) -> None:
    path = home.inbox / "a.jsonl"
    path.write_text(rows("a"))

    def add(_: float) -> None:
        path.write_text(rows("a", "b"))

    growing = WallClock(time.time, add)
    report = inbox.import_inbox(home, Ledger(home.ledger), Settings(), now=NOW, run_id="r", clock=growing)
    assert (report.files, names(home.inbox)) == ((), ["a.jsonl"])
    assert read(home, Watch(60)).accepted == 2


def test_a_file_from_the_future_is_read_when_it_does_not_change(home: Home) -> None:
    path = home.inbox / "a.jsonl"
    path.write_text(rows("a"))
    os.utime(path, (time.time() + 10**6,) * 2)
    watch = Watch()
    assert read(home, watch).accepted == 1
    assert watch.waits == [2.0]


@linux
def test_a_file_that_is_open_for_writing_stays(home: Home) -> None:
    path = home.inbox / "a.jsonl"
    with path.open("a") as writer:
        writer.write(rows("a"))
        writer.flush()
        assert is_open_for_writing(path)
        assert inbox.waiting(home, Settings(), Watch(60).clock) == ([], [path])
        assert read(home, Watch(60)).files == ()
    assert not is_open_for_writing(path)
    assert inbox.waiting(home, Settings(), Watch(60).clock) == ([path], [])
    assert read(home, Watch(60)).accepted == 1


BREAK = """
import os, subprocess, sys, time
from pathlib import Path
from memstate_core.ingest import unfinished
path, close = Path(sys.argv[1]), os.close

def close_late(file):
    os.close = close
    writer = subprocess.Popen([sys.executable, "-c", "import sys; open(sys.argv[1], 'a')", path])
    time.sleep(1)  # the writer waits for the lease, whose holder gets a signal
    close(file)
    assert writer.wait() == 0

os.close = close_late
print(unfinished.is_open_for_writing(path))
"""


@pytest.mark.slow
@linux
def test_a_writer_that_opens_while_the_question_is_asked_ends_nobody(home: Home) -> None:
    """A lease that is broken sends a signal, which ends the process unless it is one that is ignored."""
    path = home.inbox / "a.jsonl"
    path.touch()
    done = subprocess.run([sys.executable, "-c", BREAK, path], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "False\n"), done.stderr


def test_what_a_late_writer_adds_is_read(home: Home) -> None:
    """Eighty rows, one at a time, of a writer that holds the file open; the system does not know it."""
    with (home.inbox / "a.jsonl").open("a") as writer, pytest.MonkeyPatch.context() as patch:
        patch.setattr("memstate_core.ingest.unfinished.is_open_for_writing", lambda _: False)
        for number in range(80):
            writer.write(rows(f"row {number}"))
            writer.flush()
            if number % 17 == 0:
                read(home, Watch(60))
                assert (names(home.inbox), names(home.processed)) == ([], ["a.jsonl"])
    assert inbox.waiting(home, Settings(), Watch(60).clock) == ([home.processed / "a.jsonl"], [])
    report = read(home, Watch(60))
    assert (report.read, report.accepted) == (80, 11)
    assert Ledger(home.ledger).count("evidence") == 80
    assert (names(home.inbox), names(home.processed)) == ([], ["a.jsonl"])
    assert read(home, Watch(60)).files == ()


def test_an_archive_that_was_cut_is_read_when_its_rest_has_arrived(home: Home) -> None:
    whole = gzip.compress(rows(*map(str, range(500))).encode())
    (home.inbox / "a.jsonl.gz").write_bytes(whole[:200])
    assert len(read(home, Watch(60)).errors) == 1
    with (home.failed / "a.jsonl.gz").open("ab") as writer:
        writer.write(whole[200:])
    assert read(home, Watch(60)).errors == ()
    assert Ledger(home.ledger).count("evidence") == 500
    assert (names(home.failed), names(home.processed)) == ([], ["a.jsonl.gz"])


def test_the_record_of_moved_files_ends_after_a_week_and_survives_damage(home: Home) -> None:
    for name in ("a", "b", "c"):
        (home.inbox / f"{name}.jsonl").write_text(rows(name))
    read(home, Watch(60))
    record = home.imports / "moved.jsonl"
    assert len(record.read_text().splitlines()) == 3
    (home.processed / "a.jsonl").unlink()
    record.write_text(record.read_text() + '{"path": "processed/')
    read(home, Watch(60))
    assert [json.loads(line)["path"] for line in record.read_text().splitlines()] == [
        "processed/b.jsonl",
        "processed/c.jsonl",
    ]
    read(home, Watch(KEPT_SECONDS + 60))
    assert record.read_text() == ""
