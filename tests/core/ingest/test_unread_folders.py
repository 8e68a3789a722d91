"""Folders among dumps are named, since nobody reads them."""

from __future__ import annotations

from pathlib import Path

from memstate_core.ingest.unread_folders import import_warnings, named, unread_folders


def test_folders_that_hold_files_are_unread(tmp_path: Path) -> None:
    for name in ("b", "a/deeper", "empty", ".hidden", "own"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("b", "a/deeper", ".hidden", "own"):
        (tmp_path / name / "x.jsonl").write_text("{}")
    (tmp_path / "link").symlink_to(tmp_path / "b")
    assert unread_folders(tmp_path, {tmp_path / "own"}) == [tmp_path / "a", tmp_path / "b"]
    assert unread_folders(tmp_path / "none") == []
    (warning,) = import_warnings([tmp_path, tmp_path / "b", tmp_path / "b" / "x.jsonl"])
    assert warning == f"the folders in {tmp_path} are not read (a, b, own): import each of them by its path"


def test_many_folders_are_counted() -> None:
    assert named([Path(f"dumps/{n}") for n in range(7)]) == "0, 1, 2, 3, 4 and 2 more"
