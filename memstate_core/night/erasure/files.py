"""The files of a home that may hold the text of a subject, apart from ledger and snapshots.

What is derived or a record of the past is removed as a whole: caches, pages of reports, recorded questions, scratch and
notes of imports. Dumps and journals lose the lines that quote the subject; a dump without lines that can be cut out is
removed where the ledger has its rows.
"""

from __future__ import annotations

import gzip
import io
import os
import shutil
import sqlite3
import time
import zipfile
from contextlib import closing
from pathlib import Path

import polars as pl
import zstandard

from memstate_core.ingest.accesses.journal_segments import OPEN
from memstate_core.ingest.dumps import open_dump
from memstate_core.ingest.formats import OBSERVATIONS
from memstate_core.model.errors import EraseRefused, HistoryUnreadable, UnreadableDump
from memstate_core.night.erasure.subject import Found
from memstate_core.state.files import disk_problem, replace_file
from memstate_core.state.home import Home

UNFINISHED = ("QUEUED", "NOT_STARTED", "MANAGED", "STARTING", "STARTED", "CANCELING")
"""Dagster's statuses of runs that have not ended."""
_UNREADABLE = (OSError, RuntimeError, zipfile.BadZipFile, pl.exceptions.PolarsError, pl.exceptions.PanicException)
_BEING_WRITTEN_SECONDS = 1.0
_LONGEST_LINE = 1 << 20
_ZSTD, _GZIP = b"\x28\xb5\x2f\xfd", b"\x1f\x8b"


def derived(home: Home) -> list[Path]:
    """Files and folders that are removed as a whole."""
    kept = [home.reports, home.imports, home.notifications, home.recorded_questions, home.discarded]
    found = [*kept, *sorted(home.cache.parent.glob("*.sqlite*")), *_scratch(home)]
    return [path for path in found if path.exists()]


def _scratch(home: Home) -> list[Path]:
    work = home.root / "work"
    return [path for path in sorted(work.iterdir()) if path.suffix != ".lock"] if work.is_dir() else []


def remove_derived(home: Home) -> None:
    """Removes them."""
    for path in derived(home):
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def count_files(path: Path) -> int:
    """How many files a path is or has below it."""
    return 1 if path.is_file() else sum(each.is_file() for each in path.rglob("*"))


def quoting(home: Home, found: Found) -> dict[Path, int | None]:
    """Dumps and segments of the journal that quote a subject: the number of lines, None for a whole file.

    Dumps that wait in the inbox or could not be read are left out: they may hold rows of others that are nowhere else.
    """
    dumps = [path for path in _files(home.inbox) if not _is_unread(home, path)]
    return _quoting(dumps, found.texts) | _quoting(_files(home.accesses), found.journal_texts)


def _quoting(paths: list[Path], texts: list[str]) -> dict[Path, int | None]:
    needles = [text.encode() for text in texts]
    found: dict[Path, int | None] = {}
    for path in paths:
        lines = _lines(path)
        hits = None if lines is None else sum(_hit(line, needles) for line in lines)
        if hits or _named(path, texts) or (hits is None and _in_bytes(path, needles)):
            found[path] = None if _named(path, texts) else hits
    return found


def require_read(home: Home, texts: list[str]) -> None:
    """Checks that no dump quotes one of the texts that waits in the inbox or could not be read.

    Raises:
        EraseRefused: one does.
    """
    needles = [text.encode() for text in texts]
    quoting = [path for path in _unread(home) if _named(path, texts) or _in_bytes(path, needles)]
    if quoting:
        raise EraseRefused(f"{len(quoting)} dumps in the inbox quote it and were not read, such as {quoting[0]}")


def unreadable(home: Home) -> list[Path]:
    """Dumps that cannot be looked through; they are kept."""
    return [path for path in _files(home.inbox) if not _readable(path)]


def cut(home: Home, found: Found) -> None:
    """Removes those lines and files; a removed line leaves an empty one, so that the others keep their numbers."""
    dumps = [path for path in _files(home.inbox) if not _is_unread(home, path)]
    _cut(dumps, found.texts)
    _cut(_files(home.accesses), found.journal_texts)


def cut_journals(home: Home, found: Found) -> None:
    """Removes what servers write at any time: lines of the access journal, and recorded questions.

    A server that has seen the certificate writes none of them any more; one that was about to write gets a moment.
    """
    if list(home.accesses.glob(f"*{OPEN}")):
        time.sleep(_BEING_WRITTEN_SECONDS)
    _cut(_files(home.accesses), found.journal_texts)
    shutil.rmtree(home.recorded_questions, ignore_errors=True)


def _cut(paths: list[Path], texts: list[str]) -> None:
    needles = [text.encode() for text in texts]
    for path, hits in _quoting(paths, texts).items():
        lines = None if hits is None else _lines(path)
        if path.suffix == OPEN:
            _blank(path, needles)
        elif lines is None:
            path.unlink()
        else:
            _keep_lines(path, [b"" if _hit(line, needles) else line for line in lines])


def _keep_lines(path: Path, lines: list[bytes]) -> None:
    """Writes what is left of a file; removes one of which nothing is left, since its name may say whose it was."""
    content = b"\n".join(lines)
    if content.strip():
        replace_file(path, _packed(path, content))
    else:
        path.unlink()


def _blank(path: Path, needles: list[bytes]) -> None:
    """Overwrites lines of a segment with spaces where they stand, since a server may be appending to it."""
    with path.open("r+b") as file:
        at = 0
        for line in file.read().split(b"\n"):
            if _hit(line, needles):
                file.seek(at)
                file.write(b" " * len(line))
            at += len(line) + 1
        file.flush()
        os.fsync(file.fileno())


def _unread(home: Home) -> list[Path]:
    return [path for path in _files(home.inbox) if _is_unread(home, path)]


def _is_unread(home: Home, path: Path) -> bool:
    return home.processed not in path.parents


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def _named(path: Path, texts: list[str]) -> bool:
    return any(text in path.name for text in texts)


def _hit(line: bytes, needles: list[bytes]) -> bool:
    return any(needle in line for needle in needles) or (b"\\u" in line and _hit_unescaped(line, needles))


def _hit_unescaped(line: bytes, needles: list[bytes]) -> bool:
    """Whether a line quotes a text with characters that it writes as escapes."""
    try:
        plain = line.decode("utf-8", "replace").encode("latin-1", "backslashreplace").decode("unicode_escape")
    except UnicodeDecodeError:
        return False
    return any(needle in plain.encode("utf-8", "surrogatepass") for needle in needles)


def _unpacked(path: Path) -> bytes | None:
    data = path.read_bytes()
    try:
        if data.startswith(_GZIP):
            return gzip.decompress(data)
        if data.startswith(_ZSTD):
            return zstandard.ZstdDecompressor().stream_reader(io.BytesIO(data), read_across_frames=True).read()
    except (OSError, EOFError, zstandard.ZstdError):
        return None
    return data


def _packed(path: Path, content: bytes) -> bytes:
    with path.open("rb") as file:
        start = file.read(4)
    if start.startswith(_GZIP):
        return gzip.compress(content, mtime=0)
    return zstandard.ZstdCompressor().compress(content) if start == _ZSTD else content


def _lines(path: Path) -> list[bytes] | None:
    """The lines of a file in which each line is a record; None for another file."""
    content = _unpacked(path)
    if content is None or b"\x00" in content[:4096] or not content.lstrip().startswith(b"{"):
        return None
    if _is_transcript(path):
        return None
    lines = content.split(b"\n")
    return lines if all(line.rstrip().endswith(b"}") for line in lines[:2] if line.strip()) else None


def _is_transcript(path: Path) -> bool:
    """Whether a file is a chat, whose lines belong together: the first one may say whose all of them are."""
    try:
        with open_dump(path, _LONGEST_LINE, follow=False) as dump:
            return dump.format not in (None, OBSERVATIONS)
    except UnreadableDump:
        return False


def _in_bytes(path: Path, needles: list[bytes]) -> bool:
    """Whether a file quotes a text anywhere; one that cannot be unpacked does where its bytes do."""
    try:
        content = _plain(path)
    except _UNREADABLE:
        content = None
    return _hit(path.read_bytes() if content is None else content, needles)


def _readable(path: Path) -> bool:
    try:
        return _plain(path) is not None
    except _UNREADABLE:
        return False


def _plain(path: Path) -> bytes | None:
    """The content of a file with nothing packed; of Parquet its rows as JSON lines."""
    content = _unpacked(path)
    if content is None or not content.startswith((b"PK", b"PAR1")):
        return content
    if content.startswith(b"PAR1"):
        return pl.read_parquet(io.BytesIO(content)).write_ndjson().encode()
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return b"\n".join(archive.read(member) for member in archive.infolist())


def clear_runs(dagster: Path) -> int:
    """Removes Dagster's record of runs that have ended, their logs and all events; returns the number of runs."""
    history = dagster / "history"
    unfinished, ended = _runs(history / "runs.db")
    for run in ended:
        for path in (history / "runs").glob(f"{run}.db*"):
            path.unlink()
        shutil.rmtree(dagster / "storage" / run, ignore_errors=True)
    _execute(history / "runs.db", ("run_tags", "runs"), ended)
    _clear_events(history / "runs" / "index.db", unfinished)
    for path in dagster.glob("schedules/*.db"):
        _clear(path, "job_ticks")
    _clear(history / "runs.db", "daemon_heartbeats")
    return len(ended)


def has_record(dagster: Path) -> bool:
    """Whether Dagster keeps a record of runs, sensors or schedules in a folder."""
    return any(dagster.glob("*/*.db"))


def ended_runs(dagster: Path) -> int:
    """How many runs that have ended Dagster remembers."""
    return len(_runs(dagster / "history" / "runs.db")[1])


def _runs(database: Path) -> tuple[list[str], list[str]]:
    if not database.is_file():
        return [], []
    try:
        with closing(sqlite3.connect(database)) as connection:
            rows = connection.execute("SELECT run_id, status FROM runs").fetchall()
    except sqlite3.DatabaseError as error:
        raise disk_problem(database.parents[1]) or HistoryUnreadable(str(database.parents[1]), str(error)) from error
    unfinished = [run for run, status in rows if status in UNFINISHED]
    return unfinished, [run for run, _ in rows if run not in unfinished]


def _execute(database: Path, tables: tuple[str, ...], runs: list[str]) -> None:
    if database.is_file():
        with closing(sqlite3.connect(database)) as connection, connection:
            for table in tables:
                connection.executemany(f"DELETE FROM {table} WHERE run_id = ?", [(run,) for run in runs])
        _vacuum(database)


def _clear_events(database: Path, unfinished: list[str]) -> None:
    if not database.is_file():
        return
    marks = ",".join("?" * len(unfinished))
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute(f"DELETE FROM event_logs WHERE run_id NOT IN ({marks})", unfinished)
        connection.execute("DELETE FROM asset_event_tags WHERE event_id NOT IN (SELECT id FROM event_logs)")
        connection.execute(f"DELETE FROM asset_check_executions WHERE run_id NOT IN ({marks})", unfinished)
        connection.execute("UPDATE asset_keys SET last_materialization = NULL, last_run_id = NULL")
    _vacuum(database)


def _clear(database: Path, table: str) -> None:
    """Empties a table that may name dumps: what sensors said, and the errors of daemons."""
    if not database.is_file():
        return
    try:
        with closing(sqlite3.connect(database)) as connection, connection:
            connection.execute(f"DELETE FROM {table}")
        _vacuum(database)
    except sqlite3.DatabaseError as error:
        raise disk_problem(database.parent) or HistoryUnreadable(str(database.parent), str(error)) from error


def _vacuum(database: Path) -> None:
    """Writes a database again, so that free pages hold nothing that was deleted."""
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
