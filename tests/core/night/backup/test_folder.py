"""Lists of backups: sealed by a digest, with names of any bytes, and without ways out of a home."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from memstate_core.model.errors import BackupDamaged, BackupNotFound
from memstate_core.night.backup.folder import Backup, BackupFile, BackupFolder, escaped, place
from tests.core.night.backup.conftest import AT


def a_backup(number: int) -> Backup:
    files = [BackupFile("inbox/a.jsonl", 3, "0" * 64, 1)]
    return Backup(number=number, at=AT, home="/home", snapshots=[], state_hash=None, files=files, left_out=[])


@pytest.fixture
def folder(tmp_path: Path) -> BackupFolder:
    found = BackupFolder(tmp_path)
    (tmp_path / "backups").mkdir()
    for number in (1, 2, 10):
        found.write(a_backup(number))
    return found


def test_the_newest_is_read_unless_one_is_named(folder: BackupFolder) -> None:
    assert folder.numbers() == [1, 2, 10]
    assert folder.read() == a_backup(10)
    assert folder.read(2) == a_backup(2)


@pytest.mark.parametrize("number", [None, 3])
def test_a_missing_one_is_an_error(tmp_path: Path, number: int | None) -> None:
    with pytest.raises(BackupNotFound):
        BackupFolder(tmp_path / "nothing").read(number)


def test_any_changed_byte_of_a_list_is_an_error(folder: BackupFolder, tmp_path: Path) -> None:
    path = tmp_path / "backups" / "2.json"
    whole = path.read_bytes()
    for position in range(len(whole)):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 1]) + whole[position + 1 :])
        with pytest.raises(BackupDamaged, match=r"backups/2\.json"):
            folder.read(2)
    path.write_bytes(whole.replace(b'"number":2', b'"number":1'))
    with pytest.raises(BackupDamaged):
        folder.read(2)


def test_a_name_of_any_bytes_returns_as_it_was() -> None:
    path = Path(os.fsdecode(b"inbox/a b%20\xff\xc3\xa4\n.jsonl"))
    assert place(escaped(path)) == path


@pytest.mark.parametrize("path", ["/etc/passwd", "../home", "inbox/%2e%2e/%2e%2e/x", ""])
def test_a_place_outside_the_home_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="not a place below a home"):
        place(path)
