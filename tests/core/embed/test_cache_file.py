"""The file under the caches: shared by threads and processes, and never in the way of a caller."""

from __future__ import annotations

import logging
import os
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from memstate_core.embed.cache_file import CacheFile

TABLE = "CREATE TABLE IF NOT EXISTS entries(key TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID"
INSERT = "INSERT OR REPLACE INTO entries VALUES (?, ?)"
NOBODY = 65_534


@contextmanager
def cache_in(folder: Path, wait_seconds: float = 20.0) -> Iterator[CacheFile]:
    with closing(CacheFile(folder / "entries.sqlite", TABLE, wait_seconds)) as cache:
        yield cache


def value(cache: CacheFile, key: str) -> bytes | None:
    rows = cache.select("SELECT value FROM entries WHERE key = ?", (key,))
    return rows[0][0] if rows else None


def filled(folder: Path, count: int = 1) -> Path:
    """A cache that was closed, with values of 1 KiB under the keys `0`, `1` …"""
    with cache_in(folder) as cache:
        cache.insert(INSERT, [(str(key), bytes([key % 251]) * 1024) for key in range(count)])
    return folder / "entries.sqlite"


def write_own(folder: Path, name: str, count: int) -> None:
    with cache_in(folder) as cache:
        for number in range(count):
            cache.insert(INSERT, [(f"{name}/{number}", name.encode())])


# Sharing


def test_an_entry_is_found_by_other_threads_and_after_reopening(tmp_path: Path) -> None:
    with cache_in(tmp_path) as cache:
        cache.insert(INSERT, [("a", b"1"), ("b", b"2")])
        found: list[bytes | None] = []
        thread = threading.Thread(target=lambda: found.append(value(cache, "b")))
        thread.start()
        thread.join()
        assert found == [b"2"]
    with cache_in(tmp_path) as cache:
        assert (value(cache, "a"), value(cache, "absent")) == (b"1", None)


def test_a_thread_keeps_its_connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[int] = []
    connect = sqlite3.connect

    def counted(*args: Any, **options: Any) -> sqlite3.Connection:
        opened.append(threading.get_ident())
        return connect(*args, **options)

    with cache_in(tmp_path) as cache:
        value(cache, "a")  # makes the file: while one connection does, others may have to open theirs again
        monkeypatch.setattr(sqlite3, "connect", counted)
        threads = [threading.Thread(target=lambda: [value(cache, "a") for _ in range(50)]) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(opened) == 3


def test_the_first_statement_waits_for_a_connection_that_is_writing(tmp_path: Path) -> None:
    """Switching to WAL fails at once, without SQLite's own waiting, while another connection writes."""
    with closing(sqlite3.connect(tmp_path / "entries.sqlite", isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        other.execute("CREATE TABLE another(key TEXT)")
        release = threading.Timer(0.4, lambda: other.execute("COMMIT"))
        release.start()
        with cache_in(tmp_path) as cache:
            cache.insert(INSERT, [("a", b"1")])
            assert value(cache, "a") == b"1"
        release.join()


def test_many_threads_may_open_a_new_file_at_the_same_time(tmp_path: Path) -> None:
    for attempt in range(10):
        folder, start = tmp_path / str(attempt), threading.Barrier(8)

        def work(name: int, folder: Path = folder, start: threading.Barrier = start) -> None:
            start.wait()
            write_own(folder, str(name), 3)

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(work, range(8)))
        with cache_in(folder) as cache:
            assert cache.select("SELECT count(*) FROM entries", ()) == [(24,)]


def writer(folder: Path, name: str, count: int) -> subprocess.Popen[bytes]:
    code = f"from tests.core.embed.test_cache_file import *; write_own(Path({str(folder)!r}), {name!r}, {count})"
    return subprocess.Popen([sys.executable, "-c", code])


@pytest.mark.slow
def test_several_processes_may_write_at_the_same_time_and_be_killed(tmp_path: Path) -> None:
    endless = writer(tmp_path, "endless", 1_000_000)
    others = [writer(tmp_path, name, 40) for name in ("a", "b", "c")]
    assert [process.wait() for process in others] == [0, 0, 0]
    endless.kill()
    endless.wait()
    with cache_in(tmp_path) as cache:
        names = dict(cache.select("SELECT CAST(value AS TEXT), count(*) FROM entries GROUP BY value", ()))
        assert (names["a"], names["b"], names["c"]) == (40, 40, 40)
        cache.insert(INSERT, [("after", b"1")])
        assert value(cache, "after") == b"1"


def test_an_insert_is_whole_or_absent(tmp_path: Path) -> None:
    with cache_in(tmp_path) as cache:
        with pytest.raises(sqlite3.ProgrammingError):
            cache.insert(INSERT, [("a", b"1"), ("b",)])
        assert value(cache, "a") is None
        cache.insert(INSERT, [("a", b"2")])
        assert value(cache, "a") == b"2"


def test_a_mistake_in_a_statement_is_not_hidden(tmp_path: Path) -> None:
    with cache_in(tmp_path) as cache, pytest.raises(sqlite3.OperationalError, match="no such table"):
        cache.select("SELECT * FROM absent", ())


# Damage


def garbage(path: Path) -> None:
    path.write_bytes(b"no database, " * 1000)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def overwritten(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[4096:] = os.urandom(len(content) - 4096)
    path.write_bytes(content)


@pytest.mark.parametrize("damage", [garbage, cut, overwritten])
def test_a_damaged_file_is_set_aside_and_a_new_one_started(
    tmp_path: Path, damage: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    path = filled(tmp_path, 400)
    damage(path)
    damaged = path.read_bytes()
    with cache_in(tmp_path) as cache:
        assert value(cache, "399") is None
        cache.insert(INSERT, [("new", b"1")])
        assert value(cache, "new") == b"1"
    assert path.with_name("entries.sqlite.damaged").read_bytes() == damaged
    [record] = caplog.records
    assert record.levelno == logging.WARNING
    assert f"{path} is damaged" in record.getMessage()
    assert "renamed to entries.sqlite.damaged and a new cache was started" in record.getMessage()


def test_damage_that_appears_while_the_file_is_open_is_repaired_too(tmp_path: Path) -> None:
    filled(tmp_path, 400)
    with cache_in(tmp_path) as cache, cache_in(tmp_path) as other:
        assert value(cache, "1") == value(other, "1") == b"\x01" * 1024
        for each in (cache, other):
            each.close()
        garbage(tmp_path / "entries.sqlite")
        cache.insert(INSERT, [("new", b"1")])
        assert value(other, "new") == b"1"
        assert value(other, "1") is None


# Folders that cannot be written


@contextmanager
def as_nobody() -> Iterator[Path]:
    """A folder of somebody else's that this process may read and not write."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        own = os.geteuid()
        try:
            yield Path(folder)
        finally:
            os.seteuid(own)
            Path(folder).chmod(0o700)


def read_only(folder: Path) -> None:
    """Everybody may read the folder and its files, whatever umask other tests set; nobody may write."""
    for file in folder.iterdir():
        file.chmod(0o444)
    folder.chmod(0o555)
    if os.geteuid() == 0:
        os.seteuid(NOBODY)


def test_in_a_read_only_folder_nothing_is_found_and_nothing_kept(caplog: pytest.LogCaptureFixture) -> None:
    with as_nobody() as folder:
        read_only(folder)
        with cache_in(folder) as cache:
            cache.insert(INSERT, [("a", b"1")])
            assert value(cache, "a") is None
        assert list(folder.iterdir()) == []
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.mark.parametrize("damage", [Path.touch, garbage])
def test_a_file_in_a_read_only_folder_is_left_as_it_is(damage: Callable[[Path], None]) -> None:
    with as_nobody() as folder:
        path = filled(folder)
        damage(path)
        before = path.read_bytes()
        read_only(folder)
        with cache_in(folder) as cache:
            cache.insert(INSERT, [("a", b"1")])
            assert value(cache, "a") is None
        assert [file.name for file in folder.iterdir()] == ["entries.sqlite"]
        assert path.read_bytes() == before


def test_a_full_disk_costs_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with cache_in(tmp_path) as cache:
        cache.insert(INSERT, [("a", b"1")])
        pages = cache.select("PRAGMA page_count", ())[0][0]
        cache.select(f"PRAGMA max_page_count = {pages}", ())
        cache.insert(INSERT, [(str(key), bytes(4096)) for key in range(100)])
        assert value(cache, "a") == b"1"
        assert value(cache, "0") is None
    [record] = caplog.records
    assert (record.levelno, "is bypassed: database or disk is full" in record.getMessage()) == (logging.WARNING, True)


def test_a_file_that_stays_locked_is_bypassed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = filled(tmp_path)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with cache_in(tmp_path, wait_seconds=0.2) as cache:
            cache.insert(INSERT, [("a", b"1")])
            assert value(cache, "0") == b"\x00" * 1024
            assert value(cache, "a") is None
    assert "is bypassed: database is locked" in caplog.text
