"""Restores a backup into a new home: every file is compared with its digest, then the home gets its name at once.

Invariant: the files are copied into a folder beside the home, which is renamed when it is complete and flushed. A
restore that was killed leaves no home, and the next one begins again.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from memstate_core.model.errors import BackupDamaged, RestoreRefused
from memstate_core.model.progress import tracked
from memstate_core.night.backup.capture import files_below
from memstate_core.night.backup.folder import Backup, BackupFile, BackupFolder, place
from memstate_core.night.backup.later_erasures import repeat_erasures
from memstate_core.run.store import open_store
from memstate_core.state.files import make_folder, require_space, sync_path
from memstate_core.state.home import Home
from memstate_core.state.lock import exclusive


def restore_backup(
    where: Path | str, home: Path, number: int | None = None, erasures: Path | str | None = None
) -> tuple[Backup, list[int]]:
    """Restores a backup into a home that does not exist or is empty.

    Erasures that its store made later are made again before the home gets its name.

    Args:
        where: the folder of the backups, or its URL.
        home: the home that is made.
        number: which backup; the newest one if left out.
        erasures: another home, or folder or URL of backups, that may know later erasures, beside the home of the
            backup and later backups of the folder.

    Returns:
        The backup, and the numbers of the certificates of what was erased again.

    Raises:
        RestoreRefused: the home holds something, or cannot be put in place at once.
        ErasureNotRepeated: a later erasure cannot be made again; nothing was restored.
        BackupNotFound: there is no such backup.
        BackupDamaged: a file of the backup is missing or differs; nothing was restored.
        BackupUnreachable: the object storage does not answer, or refuses; nothing was restored.
        DiskFull: there is no room for the home.
        StoreLocked: another process restores into this home.
    """
    folder = BackupFolder(where)
    backup = folder.read(number)
    target = home.resolve()
    _require_empty(target)
    make_folder(target.parent)
    beside = target.with_name(f".{target.name}.restoring")
    with exclusive(beside / "restore.lock", f"process {os.getpid()} (memstate restore-backup)"):
        try:
            draft = beside / "home"
            shutil.rmtree(draft, ignore_errors=True)
            make_folder(draft)
            require_space(beside, backup.size)
            restore_files(folder, backup, draft)
            again = repeat_erasures(folder, backup, open_store(draft), beside / "later", erasures)
            _require_empty(target)
            draft.rename(target)
            sync_path(target.parent)
        finally:
            shutil.rmtree(beside, ignore_errors=True)
    return backup, again


def restore_files(folder: BackupFolder, backup: Backup, target: Path) -> None:
    """Copies the files of a backup into an empty folder and flushes them.

    Raises:
        BackupDamaged: files are missing or differ; it names all of them.
    """
    files = tracked(backup.files, "restore", backup.size, "bytes", lambda file: file.size)
    problems = [problem for file in files if (problem := _restore(folder, file, target))]
    if problems:
        raise BackupDamaged(folder.name(backup.number), problems)
    for path in {target, *(file.parent for file in files_below(target))}:
        sync_path(path)


def _restore(folder: BackupFolder, file: BackupFile, target: Path) -> str | None:
    try:
        path = target / place(file.path)
    except ValueError as error:
        return str(error)
    make_folder(path.parent)
    problem = folder.objects.fetch(file.sha256, path)
    if problem is not None:
        return f"{problem} ({file.path})"
    os.utime(path, ns=(file.modified, file.modified))
    return None


def _require_empty(home: Path) -> None:
    open_store(home)  # refuses a path that cannot be a home
    if home.exists() and not home.is_dir():
        raise RestoreRefused(str(home), "it is a file")
    found = sorted(path.name for path in home.iterdir()) if home.is_dir() else []
    if found:
        what = "a store" if Home(home).ledger.is_dir() else "other files"
        raise RestoreRefused(str(home), f"it holds {what} ({', '.join(found[:3])}{', …' * (len(found) > 3)})")
    if os.path.ismount(home):
        raise RestoreRefused(
            str(home), "it is a mount point, which cannot be replaced in one step: name a folder in it"
        )
