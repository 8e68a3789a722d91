"""Restoring gives the whole store or nothing: damage is named, a kill leaves no home, and no store is written over."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from memstate_core.model.errors import BackupDamaged, DiskFull, RestoreRefused
from memstate_core.night.backup.back_up import back_up
from memstate_core.night.backup.folder import BackupFolder
from memstate_core.night.backup.restore import restore_backup
from memstate_core.night.backup.verify import verify_backups
from memstate_core.run.store import open_store
from memstate_core.storage.storage import object_name
from tests import warm
from tests.core.night.backup.conftest import AT, NIGHTS, failures, flip, observations
from tests.pipeline.conftest import clean_environment, run_memstate, shared

pytestmark = pytest.mark.slow

DIE_AT = """
import os, sys
import {module} as module

real, calls = getattr(module, {name!r}), []

def die(*arguments, **named):
    calls.append(1)
    if len(calls) < {call}:
        return real(*arguments, **named)
    if {after}:
        real(*arguments, **named)
    os._exit(137)

setattr(module, {name!r}, die)
sys.argv[0] = "memstate"
from memstate_pipeline.cli.main import main
main()
"""
BACKUP = {
    "while it captures": ("memstate_core.night.backup.capture", "_inbox", 1, False),
    "with everything captured": ("memstate_core.night.backup.back_up", "_trusted", 1, False),
    "before the tenth object has its name": ("memstate_core.storage.folder", "make_folder", 21, True),
    "before the list": ("memstate_core.storage.folder", "replace_file", 1, False),
    "after the list": ("memstate_core.storage.folder", "replace_file", 1, True),
    "while it removes older ones": ("memstate_core.storage.folder", "sync_path", 1, False),
}
RESTORE = {
    "before the first file": ("memstate_core.storage.objects", "copied", 1, False),
    "after some files": ("memstate_core.storage.objects", "copied", 12, True),
    "with all files, before they are flushed": ("memstate_core.night.backup.restore", "sync_path", 1, False),
}


@pytest.fixture(scope="session")
def made(prepared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one backup of the store."""

    def make(target: Path) -> None:
        back_up(open_store(prepared, {}), target, AT)

    return shared(tmp_path_factory, "backups", make)


@pytest.fixture
def copy(made: Path, folder: Path) -> Path:
    """A copy of it that a test may damage."""
    return Path(shutil.copytree(made, folder))


def killed(point: tuple[str, str, int, bool], home: Path, *arguments: str) -> None:
    module, name, call, after = point
    script = DIE_AT.format(module=module, name=name, call=call, after=after)
    done = warm.run(["-c", script, "--home", str(home), *arguments], clean_environment())
    assert done.returncode == 137, done.stdout + done.stderr


@pytest.mark.parametrize("point", BACKUP)
def test_a_killed_backup_is_none_and_the_next_one_is_whole(
    point: str, home: Path, folder: Path, restored: Path
) -> None:
    removes = point == "while it removes older ones"
    if removes:
        assert run_memstate(home, "backup", str(folder)).code == 0
    killed(BACKUP[point], home, "backup", str(folder), "--keep", "1")
    numbers = BackupFolder(folder).numbers()
    assert numbers == ([2] if removes else [1] if point == "after the list" else [])
    for number in numbers:
        restore_backup(folder, restored.with_name("early"), number)
        assert failures(restored.with_name("early")) == []

    again = run_memstate(home, "backup", str(folder), "--keep", "1", "--json")
    assert again.code == 0, again.stderr
    assert not list((home / "work").glob("backup/*"))
    listed = {file.sha256 for file in BackupFolder(folder).read().files}
    assert {path.parent.name + path.name for path in (folder / "objects").glob("*/*")} == listed
    restore_backup(folder, restored)
    assert failures(restored) == []


@pytest.mark.parametrize("point", RESTORE)
def test_a_killed_restore_leaves_no_home_and_can_be_run_again(point: str, made: Path, restored: Path) -> None:
    killed(RESTORE[point], restored, "restore-backup", str(made))
    assert not restored.exists()
    again = run_memstate(restored, "restore-backup", str(made), "--json")
    assert again.code == 0, again.stderr
    assert [path.name for path in restored.parent.iterdir()] == ["home"]
    assert failures(restored) == []
    assert run_memstate(restored, "maintain", "--now", NIGHTS[2]).code == 0
    assert len(observations(restored)) == 6


@pytest.mark.parametrize("is_missing", [True, False])
def test_a_damaged_object_is_named_by_verify_and_by_restore(copy: Path, restored: Path, is_missing: bool) -> None:
    backup = BackupFolder(copy).read()
    bad = next(file for file in backup.files if file.path.startswith("ledger/evidence/part"))
    path = copy / object_name(bad.sha256)
    if is_missing:
        path.unlink()
    else:
        flip(path)
    expected = f"objects/{bad.sha256[:2]}/{bad.sha256[2:]}"
    found = verify_backups(copy, deep=True)
    assert list(found) == ["backup 1"]
    assert [(each.name, each.passed) for each in found["backup 1"]] == [("list", True), ("file digests", False)]
    assert expected in found["backup 1"][1].detail
    assert bad.path in found["backup 1"][1].detail
    answer = run_memstate(restored, "restore-backup", str(copy), "--json")
    assert (answer.code, answer.document["error"]["type"]) == (4, "BackupDamaged")
    assert len(answer.document["error"]["problems"]) == 1
    assert expected in answer.document["error"]["message"]
    assert list(restored.parent.iterdir()) == []


def test_a_damaged_list_is_named(copy: Path, restored: Path) -> None:
    flip(copy / "backups" / "1.json")
    answer = run_memstate(restored, "verify", "--backup", str(copy), "--json")
    assert answer.code == 1
    assert [(row["name"], row["passed"]) for row in answer.document["verdicts"]] == [("list", False)]
    with pytest.raises(BackupDamaged, match=r"backups/1\.json"):
        restore_backup(copy, restored)
    assert not restored.exists()


def test_a_deep_verification_restores_and_folds_the_ledger(made: Path, restored: Path) -> None:
    answer = run_memstate(restored, "verify", "--backup", str(made), "--deep", "--json")
    assert answer.code == 0, answer.stdout
    names = [(row["snapshot"], row["name"]) for row in answer.document["verdicts"]]
    assert names[:2] == [("backup 1", "list"), ("backup 1", "file digests")]
    assert {("backup 1, s0/2", "L3 rebuild"), ("backup 1, s1/2", "L3 rebuild")} <= set(names)
    assert not restored.exists()


def test_a_deep_verification_finds_what_digests_do_not(home: Path, folder: Path) -> None:
    """Homes that were wrong when they were backed up: an older backup, and a snapshot that is kept and not served."""
    settings = (home / "memstate.toml").read_text()
    (home / "memstate.toml").write_text("[store]\nshards = 3\n")
    back_up(open_store(home, {}), folder, AT)
    (home / "memstate.toml").write_text(settings)
    manifest = home / "snapshots" / "s0" / "1" / "manifest.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "state_hash": "0" * 64}))
    back_up(open_store(home, {}), folder, AT)
    assert all(verdict.passed for found in verify_backups(folder, deep=False).values() for verdict in found)
    found = verify_backups(folder, deep=True)
    bad = {name: [each.name for each in verdicts if not each.passed] for name, verdicts in found.items()}
    assert {name for name, verdicts in bad.items() if verdicts and name.startswith("backup 1, ")}
    assert {name: names for name, names in bad.items() if names and name.startswith("backup 2")} == {
        "backup 2, s0/1": ["manifest", "state hash"]
    }
    assert {"backup 2, s0/2", "backup 2, s1/1", "backup 2, s1/2"} <= found.keys()


def test_only_an_empty_home_is_restored_into(made: Path, home: Path, restored: Path) -> None:
    before = sorted(path for path in home.rglob("*") if "work" not in path.parts)
    with pytest.raises(RestoreRefused, match="holds a store"):
        restore_backup(made, home)
    assert sorted(path for path in home.rglob("*") if "work" not in path.parts) == before
    restored.mkdir(parents=True)
    (restored / "notes.txt").touch()
    with pytest.raises(RestoreRefused, match=r"other files \(notes\.txt\)"):
        restore_backup(made, restored)
    (restored / "notes.txt").unlink()
    restored.with_name("link").symlink_to(restored)
    restore_backup(made, restored.with_name("link"))
    assert failures(restored) == []


def test_a_full_disk_leaves_no_home(made: Path, restored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("shutil.disk_usage", lambda _: _Disk)
        with pytest.raises(DiskFull):
            restore_backup(made, restored)
    assert list(restored.parent.iterdir()) == []


class _Disk:
    free = 65 << 20
