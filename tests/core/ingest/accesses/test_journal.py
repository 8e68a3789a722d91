"""The access journal: flushed lines are on disk, only complete or abandoned segments are collected."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from memstate_core.ingest.accesses.journal import AccessJournal
from memstate_core.ingest.accesses.journal_segments import waiting_segments

AT = datetime(2026, 5, 1, 12, tzinfo=UTC)
WRITER = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from memstate_core.ingest.accesses.journal import AccessJournal

journal = AccessJournal(Path(sys.argv[1]), sys.argv[2])
journal.record("flushed", datetime(2026, 5, 1, tzinfo=UTC), "server")
journal.flush()
journal.record("not flushed", datetime(2026, 5, 1, tzinfo=UTC), "server")
print("written", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "accesses"


@contextmanager
def writer(folder: Path, name: str) -> Iterator[subprocess.Popen[str]]:
    """Another process with an open segment that holds one flushed access, until the block ends."""
    command = [sys.executable, "-c", WRITER, str(folder), name]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "written\n"
            yield process
        finally:
            process.kill()


def lines(path: Path) -> list[dict[str, Any]]:
    """The lines of a segment, after their checksums were compared and removed."""
    text = path.read_text()
    assert text.endswith("\n")
    return [_checked(line) for line in text.splitlines()]


def _checked(line: str) -> dict[str, Any]:
    content, _, checksum = line.rpartition(',"crc32":')
    if "segment" in json.loads(line):
        return dict(json.loads(line))
    assert checksum == f"{crc32(f'{content}}}'.encode())}}}"
    return dict(json.loads(content + "}"))


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def waiting(folder: Path) -> list[str]:
    return [path.name for path in waiting_segments(folder)]


def test_a_line_says_what_was_used_and_leaves_out_what_says_nothing(folder: Path) -> None:
    with AccessJournal(folder, "a") as journal:
        journal.record("t1", AT, "cli")
        berlin = AT.astimezone(timezone(timedelta(hours=2)))
        journal.record("t2", berlin, "server", fields=("owner",), failed=True, scope="user:aya")
    assert journal.path == folder / "a.jsonl"
    assert lines(journal.path) == [
        {"segment": "a"},
        {"topic_id": "t1", "at": "2026-05-01T12:00:00Z", "source": "cli"},
        {
            "topic_id": "t2",
            "at": "2026-05-01T12:00:00Z",
            "source": "server",
            "fields": ["owner"],
            "failed": True,
            "scope": "user:aya",
        },
    ]


def test_accesses_are_held_until_they_are_flushed_or_too_many(folder: Path) -> None:
    with AccessJournal(folder, "a", limit=3) as journal:
        journal.record("t1", AT, "cli")
        assert len(lines(journal.path)) == 1
        journal.flush()
        assert len(lines(journal.path)) == 2
        for number in range(3):
            journal.record(f"u{number}", AT, "cli")
        assert len(lines(journal.path)) == 5


def test_a_segment_is_complete_when_it_is_closed(folder: Path) -> None:
    first = AccessJournal(folder, "a")
    first.record("t1", AT, "cli")
    assert (names(folder), waiting(folder)) == (["a.open"], [])
    first.close()
    second = AccessJournal(folder, "b")
    second.record("t2", AT, "cli")
    assert (names(folder), waiting(folder)) == (["a.jsonl", "b.open"], ["a.jsonl"])
    second.close()
    second.close()
    assert waiting(folder) == ["a.jsonl", "b.jsonl"]
    assert [lines(folder / f"{name}.jsonl")[1]["topic_id"] for name in "ab"] == ["t1", "t2"]


def test_a_segment_without_accesses_leaves_nothing(folder: Path) -> None:
    AccessJournal(folder, "a").close()
    assert names(folder) == []


def test_a_closed_journal_takes_nothing(folder: Path) -> None:
    journal = AccessJournal(folder, "a", limit=1)
    journal.close()
    with pytest.raises(ValueError, match="is closed"):
        journal.record("t", AT, "cli")


@pytest.mark.parametrize("suffix", [".open", ".jsonl"])
def test_a_name_is_used_once(folder: Path, suffix: str) -> None:
    folder.mkdir()
    (folder / f"a{suffix}").write_text("somebody's\n")
    with pytest.raises(FileExistsError, match=f"a{suffix} exists, expected a name that no segment ever had"):
        AccessJournal(folder, "a")
    assert names(folder) == [f"a{suffix}"]
    assert (folder / f"a{suffix}").read_text() == "somebody's\n"


@pytest.mark.parametrize("name", ["", ".a", "a/b", ".."])
def test_a_name_is_a_file_name(folder: Path, name: str) -> None:
    with pytest.raises(ValueError, match="cannot name a segment"):
        AccessJournal(folder, name)


def test_a_killed_writer_leaves_what_it_flushed_to_be_collected(folder: Path) -> None:
    with writer(folder, "a") as process:
        assert waiting(folder) == []
        process.kill()
        process.wait()
        assert waiting(folder) == ["a.open"]
    assert [line.get("topic_id") for line in lines(folder / "a.open")] == [None, "flushed"]


def test_what_is_neither_complete_nor_left_alone_is_not_collected(folder: Path) -> None:
    assert waiting(folder) == []
    (folder / "processed").mkdir(parents=True)
    (folder / "empty.open").touch()
    for name in (".hidden.jsonl", "note.txt", "b.jsonl", "a.jsonl"):
        (folder / name).write_text("{}\n")
    assert waiting(folder) == ["a.jsonl", "b.jsonl"]


def test_a_disk_that_refuses_loses_nothing_and_writes_nothing_in_part(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = AccessJournal(folder, "a", limit=2)
    write = os.write

    def full(handle: int, data: bytes) -> int:
        if len(data) <= 10:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(handle, data[:10])

    journal.record("t1", AT, "cli")
    with monkeypatch.context() as broken:
        broken.setattr(os, "write", full)
        for _ in range(3):
            with pytest.raises(OSError, match="No space left"):
                journal.record("t2", AT, "cli")
        assert len(lines(journal.path)) == 1
    journal.close()
    assert [line.get("topic_id") for line in lines(journal.path)] == [None, "t1", "t2"]


def test_threads_may_share_a_journal(folder: Path) -> None:
    journal = AccessJournal(folder, "a", limit=7)

    def work(name: str) -> None:
        for number in range(100):
            journal.record(f"{name}{number}", AT, "server")

    workers = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    journal.close()
    assert {line["topic_id"] for line in lines(journal.path)[1:]} == {f"{w}{n}" for w in "abcd" for n in range(100)}
