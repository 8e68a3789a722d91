"""Backups of a real store of two shards: whole at every moment of a night, incremental, and never of damaged files."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from memstate_core.ingest.accesses.collect import collect_accesses
from memstate_core.ingest.inbox import import_inbox
from memstate_core.model.errors import (
    BackupDamaged,
    BackupRefused,
    DiskFull,
    LedgerDamaged,
    MemstateError,
    SnapshotDamaged,
)
from memstate_core.model.text import parse_moment
from memstate_core.night import publish as publishing
from memstate_core.night.backup.back_up import back_up, last_backup
from memstate_core.night.backup.folder import BackupFolder
from memstate_core.night.backup.restore import restore_backup
from memstate_core.run.store import Store, open_store
from memstate_core.state.current import served
from memstate_core.state.home import Home
from memstate_core.state.snapshots import numbers as numbers_kept
from memstate_pipeline.run import maintain
from tests.core.night.backup.conftest import AT, NIGHTS, failures, flip, observations, rows
from tests.pipeline.conftest import run_memstate

pytestmark = pytest.mark.slow
NOW = parse_moment(NIGHTS[2])
NAMES = {f"{name}-{number}" for name in ("aya", "ben") for number in (1, 2, 3)}


def names(home: Path) -> list[str]:
    store = open_store(home, {})
    return [snapshot.name for snapshot in served(store.home, store.shards)]


@pytest.mark.usefixtures("journal")
def test_a_restored_store_is_the_same_and_goes_on(store: Store, folder: Path, restored: Path) -> None:
    made, _, _ = back_up(store, folder, AT)
    restore_backup(folder, restored)
    assert failures(restored) == []
    status = run_memstate(restored, "status", "--json").document
    assert (status["state_hash"], status["snapshot"]) == (made.state_hash, "s0/2,s1/2")
    for name in ("memstate.toml", "keys.json", "inbox/waiting.jsonl"):
        assert (restored / name).read_bytes() == (store.home.root / name).read_bytes()
        assert (restored / name).stat().st_mtime_ns == (store.home.root / name).stat().st_mtime_ns
    listed = run_memstate(restored, "keys", "list", "--json").stdout
    assert "reader" in listed
    assert {path.stat().st_mode & 0o777 for path in (restored, restored / "ledger")} == {0o700}
    assert {path.stat().st_mode & 0o777 for path in (restored / "keys.json", restored / "memstate.toml")} == {0o600}
    assert {file.path.partition("/")[0] for file in made.files} == {
        *("accesses", "inbox", "keys.json", "ledger", "memstate.toml", "reports", "snapshots")
    }
    assert list((restored / "snapshots" / "s0").glob("*/manifest.json"))
    assert sorted(path.name for path in restored.parent.iterdir()) == ["home"]

    assert run_memstate(restored, "maintain", "--now", NIGHTS[2]).code == 0
    assert observations(restored) == NAMES
    assert open_store(restored, {}).ledger.count("accesses") == 1
    assert names(restored) == ["s0/3", "s1/3"]
    assert failures(restored) == []


MOMENTS = ("_written", "_record", "move_current", "prune")
"""Functions of publishing; a backup is made before each, for each of the two shards."""


@pytest.fixture(scope="module")
def of_a_night(prepared: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, list[int]]]:
    """The folder of the backups that were made in a night, and their numbers by the moment."""
    folder = tmp_path_factory.mktemp("night")
    store = open_store(Path(shutil.copytree(prepared, folder / "home")), {})
    numbers: dict[str, list[int]] = {name: [] for name in MOMENTS}

    def with_backup(name: str, real: Callable[..., Any], *given: Any) -> Any:
        made, _, _ = back_up(store, folder / "backups", AT)
        numbers[name].append(made.number)
        return real(*given)

    with pytest.MonkeyPatch.context() as patch:
        for name in MOMENTS:
            patch.setattr(publishing, name, partial(with_backup, name, getattr(publishing, name)))
        maintain(store, NOW)
    return folder / "backups", numbers


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_backup_at_any_moment_of_publishing_is_whole(
    of_a_night: tuple[Path, dict[str, list[int]]], restored: Path, moment: str
) -> None:
    folder, numbers = of_a_night
    assert len(numbers[moment]) == 2
    restore_backup(folder, restored, numbers[moment][0])
    assert failures(restored) == []
    published = 3 if moment in ("move_current", "prune") else 2
    assert published in {int(name.partition("/")[2]) for name in names(restored)}
    store = open_store(restored, {})
    assert [f"{shard}/{numbers_kept(Home(restored), shard)[-1]}" for shard in store.shards] == names(restored)
    maintain(store, NOW)
    assert observations(restored) == NAMES
    assert failures(restored) == []


def test_files_that_move_while_they_are_captured_are_in_the_ledger_or_in_the_backup(
    store: Store, folder: Path, restored: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The inbox is imported between the look at it and the lock."""
    from memstate_core.night.backup import capture

    real = capture.complete

    def complete(*given: Any) -> Any:
        found = real(*given)
        import_inbox(store.home, store.ledger, store.settings, now=NOW, run_id="meanwhile")
        return found

    monkeypatch.setattr(capture, "complete", complete)
    back_up(store, folder, AT)
    restore_backup(folder, restored)
    assert observations(restored) == NAMES
    assert (restored / "inbox" / "processed" / "waiting.jsonl").read_bytes() == rows(3)


@pytest.mark.usefixtures("journal")
def test_an_open_segment_counts_once(store: Store, folder: Path, restored: Path) -> None:
    back_up(store, folder, AT)
    restore_backup(folder, restored)
    again = open_store(restored, {})
    report = collect_accesses(again.home, again.ledger, again.settings, NOW, "after")
    assert (report.accepted, report.quarantined, report.errors) == (1, 0, ())


def test_a_second_backup_copies_what_is_new(store: Store, folder: Path, restored: Path) -> None:
    first, copying, _ = back_up(store, folder, AT)
    assert copying.sent_bytes > 0.9 * first.size
    again, copying, _ = back_up(store, folder, AT)
    assert (again.number, len(copying.sent)) == (2, 0)
    assert [(file.path, file.sha256) for file in again.files] == [(file.path, file.sha256) for file in first.files]

    maintain(store, NOW)
    before = {path: path.stat() for path in (folder / "objects").glob("*/*")}
    third, copying, _ = back_up(store, folder, AT)
    new = {file.sha256 for file in third.files} - {file.sha256 for file in first.files}
    assert len(copying.sent) == len(new) == len(list((folder / "objects").glob("*/*"))) - len(before)
    assert all(path.stat() == found for path, found in before.items())

    _, copying, removed = back_up(store, folder, AT, keep=1)
    assert (len(copying.sent), removed, BackupFolder(folder).numbers()) == (0, [1, 2, 3], [4])
    listed = {file.sha256 for file in third.files}
    assert {path.parent.name + path.name for path in (folder / "objects").glob("*/*")} == listed
    restore_backup(folder, restored)
    assert failures(restored) == []
    note = last_backup(store.home)
    assert note is not None
    assert (note.number, note.folder) == (4, str(folder))


def test_backups_of_another_home_stay(store: Store, prepared: Path, folder: Path) -> None:
    back_up(open_store(prepared, {}), folder, AT)
    back_up(store, folder, AT)
    _, _, removed = back_up(store, folder, AT, keep=1)
    assert (removed, BackupFolder(folder).numbers()) == ([2], [1, 3])


def test_without_hard_links_files_are_copied(
    store: Store, folder: Path, restored: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_links(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    with monkeypatch.context() as patch:
        patch.setattr(os, "link", no_links)
        back_up(store, folder, AT)
    restore_backup(folder, restored)
    assert failures(restored) == []


def test_a_damaged_home_is_not_backed_up(store: Store, folder: Path) -> None:
    data = next((store.home.ledger / "evidence").glob("*.parquet"))
    sound = data.read_bytes()
    flip(data)
    with pytest.raises(LedgerDamaged, match=data.name):
        back_up(store, folder, AT)
    data.unlink()
    with pytest.raises(LedgerDamaged, match="is missing"):
        back_up(store, folder, AT)
    data.write_bytes(sound)
    flip(store.home.snapshots("s1") / "2" / "evidence.parquet")
    with pytest.raises(SnapshotDamaged, match=r"s1/2.*evidence\.parquet"):
        back_up(store, folder / "other", AT)
    assert BackupFolder(folder).numbers() == BackupFolder(folder / "other").numbers() == []
    assert not store.home.work("backup").exists()


def test_an_older_damaged_snapshot_keeps_no_backup_from_being_made(store: Store, folder: Path, restored: Path) -> None:
    (store.home.snapshots("s0") / "1" / "topics.parquet").unlink()
    made, _, _ = back_up(store, folder, AT)
    assert [line.partition(":")[0] for line in made.left_out] == ["snapshots/s0/1"]
    restore_backup(folder, restored)
    assert failures(restored) == []


def test_what_is_not_complete_is_left_out_by_name(store: Store, folder: Path) -> None:
    (store.home.inbox / "link.jsonl").symlink_to(store.home.keys)
    with (store.home.inbox / "slow.jsonl").open("wb") as slow:
        slow.write(rows(4))
        slow.flush()
        made, _, _ = back_up(store, folder, AT)
    assert sorted(made.left_out) == [
        "inbox/link.jsonl: it is a symbolic link",
        "inbox/slow.jsonl: it was still being written",
    ]


@pytest.mark.parametrize(
    ("where", "problem"),
    [
        ("ftp://bucket/backups", "no URL of a folder or bucket"),
        ("{home}/backups", "part of the home"),
        ("{home}/keys.json", "part of the home"),
        ("{home}/..", "holds other files"),
    ],
)
def test_a_folder_that_cannot_hold_backups_is_refused(store: Store, where: str, problem: str) -> None:
    with pytest.raises(BackupRefused, match=problem):
        back_up(store, where.format(home=store.home.root), AT)


def test_a_full_disk_is_noticed_before_anything_is_copied(
    store: Store, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: _Disk)
    with pytest.raises(DiskFull):
        back_up(store, folder, AT)
    assert not (folder / "objects").exists()


class _Disk:
    free = 65 << 20


def test_a_damaged_list_keeps_older_backups_from_removal(store: Store, folder: Path) -> None:
    back_up(store, folder, AT)
    flip(folder / "backups" / "1.json")
    with pytest.raises(BackupDamaged, match=r"backups/1\.json"):
        back_up(store, folder, AT, keep=1)
    made, copying, _ = back_up(store, folder, AT)
    assert (made.number, len(copying.sent)) == (2, 0)


def test_a_missing_home_is_an_error(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(MemstateError, match="holds nothing"):
        back_up(open_store(tmp_path / "nowhere", {}), folder, AT)
    assert not folder.exists()
    assert last_backup(Home(tmp_path / "nowhere")) is None
