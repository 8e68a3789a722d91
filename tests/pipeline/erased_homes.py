"""What tests of erasures share: dumps, the search for what is left, and a life with every kind of decision."""

from __future__ import annotations

import gzip
import io
import json
import sqlite3
import zipfile
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import zstandard

from memstate_core.night.erasure import erase as erasure
from memstate_core.night.erasure.certificate import Certificate
from memstate_core.night.erasure.subject import Subject
from memstate_core.run.store import Store

AT = datetime(2026, 4, 9, tzinfo=UTC)


def dump(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def unpacked(name: str, data: bytes) -> Iterator[bytes]:
    """A file's name and bytes, and what they unpack to, again and again."""
    yield name.encode()
    yield data
    if data.startswith(b"PAR1"):
        with suppress(pl.exceptions.ComputeError):
            for column, values in pl.read_parquet(io.BytesIO(data)).to_dict(as_series=False).items():
                yield f"{column}{[bytes(each) if isinstance(each, bytes) else each for each in values]}".encode()
    if data.startswith(b"\x1f\x8b"):
        with suppress(OSError, EOFError):
            yield from unpacked("", gzip.decompress(data))
    if data.startswith(b"\x28\xb5\x2f\xfd"):
        yield from unpacked("", zstandard.ZstdDecompressor().stream_reader(io.BytesIO(data)).read())
    if data.startswith(b"PK"):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for member in archive.infolist():
                yield from unpacked(member.filename, archive.read(member))


def cells(path: Path) -> Iterator[bytes]:
    """Every cell of a SQLite database, since a long one is spread over pages; pages that are free are in the bytes."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        for (table,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            for row in database.execute(f'SELECT * FROM "{table}"'):
                yield repr(row).encode()


def _common_prefix(marks: list[bytes]) -> bytes:
    first, last = min(marks, default=b""), max(marks, default=b"")
    differ = (at for at, (a, b) in enumerate(zip(first, last, strict=False)) if a != b)
    return first[: next(differ, min(len(first), len(last)))]


def _held(data: bytes, marks: list[bytes], common: bytes) -> list[bytes]:
    """The marks in some bytes: what follows each place of their common beginning is compared, not the whole again."""
    if not common:
        return [mark for mark in marks if mark in data]
    longest, starts, at = max(map(len, marks)), set(), data.find(common)
    while at >= 0:
        starts.add(data[at : at + longest])
        at = data.find(common, at + 1)
    return [mark for mark in marks if any(start.startswith(mark) for start in starts)]


def left(root: Path, marks: list[str]) -> dict[str, list[str]]:
    """The marks that any byte below a folder still has, by file; upper and lower case are the same."""
    wanted = [mark.lower().encode() for mark in marks]
    common = _common_prefix(wanted)
    found: dict[str, list[str]] = {}
    for path in sorted(path for path in root.rglob("*") if path.is_file()):
        data = path.read_bytes()
        parts = [*unpacked(str(path.relative_to(root)), data)]
        parts += cells(path) if data.startswith(b"SQLite format 3") else []
        every = b"\n".join(parts).lower()
        if hits := [mark.decode() for mark in _held(every, wanted, common)]:
            found[str(path.relative_to(root))] = hits
    return found


def holding(root: Path, mark: str) -> list[str]:
    """The files that still have a mark."""
    return list(left(root, [mark]))


def state(store: Store) -> str | None:
    return erasure.served_state(store)


def erase(store: Store, kind: str, value: str) -> Certificate:
    return erasure.erase(store, None, Subject(kind, value), AT, "tester", f"for {value}")
