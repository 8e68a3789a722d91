"""Files of the ledger are read once for all shards, and again whenever one may have changed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from memstate_core.state.files import file_digest
from memstate_core.state.ledger import read_once
from memstate_core.state.ledger.read_once import digest_once, files_read_once

OLD = 10_000_000_000
"""Nanoseconds that a file has been left alone for."""


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    found: list[Path] = []

    def counted(path: Path) -> str:
        found.append(path)
        return file_digest(path)

    monkeypatch.setattr(read_once, "file_digest", counted)
    return found


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A file that was written long ago, since a time of change cannot be set."""
    path = tmp_path / "file"
    path.write_bytes(b"as written")
    changed = path.stat().st_ctime_ns
    monkeypatch.setattr("time.time_ns", lambda: changed + OLD)
    return path


def test_a_file_is_read_once_in_a_block_and_each_time_outside(file: Path, reads: list[Path]) -> None:
    digest_once(file)
    with files_read_once():
        assert digest_once(file) == digest_once(file) == file_digest(file)
    digest_once(file)
    with files_read_once():
        digest_once(file)
    assert len(reads) == 4


def test_other_bytes_of_the_same_size_and_time_are_read(file: Path) -> None:
    before = file.stat()
    with files_read_once():
        first = digest_once(file)
        file.write_bytes(b"in damage!")
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert file.stat().st_mtime_ns == before.st_mtime_ns
        assert digest_once(file) == file_digest(file) != first


def test_a_file_that_has_just_changed_is_read_again(
    file: Path, reads: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = file.stat().st_ctime_ns
    monkeypatch.setattr("time.time_ns", lambda: changed + 1_000_000)
    with files_read_once():
        digest_once(file)
        digest_once(file)
    assert len(reads) == 2


def test_a_missing_file_stays_an_error(file: Path) -> None:
    with files_read_once():
        digest_once(file)
        file.unlink()
        with pytest.raises(FileNotFoundError):
            digest_once(file)
