"""Makes a backup: copies what the folder does not hold yet, then writes the list of the backup."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

from msgspec import Struct
from msgspec import json as msgjson

from memstate_core.ingest.unfinished import FileState
from memstate_core.model.errors import BackupDamaged, BackupNotFound
from memstate_core.model.text import iso
from memstate_core.night.backup.capture import Captured, captured
from memstate_core.night.backup.folder import Backup, BackupFile, BackupFolder
from memstate_core.night.backup.sources import sources
from memstate_core.night.backup.transfer import Transferred, transfer, with_digests
from memstate_core.run.store import Store
from memstate_core.state.files import replace_file
from memstate_core.state.home import Home
from memstate_core.state.snapshots import combined_state_hash
from memstate_core.storage.conditional_puts import require_conditional_puts
from memstate_core.storage.folder import FolderStorage
from memstate_core.storage.purpose import BACKUPS

_SETTLED_NS = 2_000_000_000
"""A file that changed so shortly before the earlier backup began may have changed again within its clock's tick."""


class Note(Struct, frozen=True):
    """What a home remembers of its last backup."""

    number: int
    at: str
    folder: str


def back_up(
    store: Store, where: Path | str, at: datetime, keep: int | None = None
) -> tuple[Backup, Transferred, list[int]]:
    """Backs a store up into a folder or object storage; runs, imports and servers go on.

    Args:
        store: the store.
        where: the folder of the backups, or its URL.
        at: when the backup begins, by the machine's clock.
        keep: how many backups of this home stay, this one included; None for all.

    Returns:
        The backup, what was copied for it, and the numbers of earlier ones that were removed.

    Raises:
        BackupRefused: the folder or URL cannot hold backups.
        BackupUnreachable: the object storage does not answer, or refuses; no backup was made.
        ConditionalPutsIgnored: there is no backup yet, and the object storage could not keep writers apart.
        CloudUnavailable: the package for object storage is missing.
        BackupDamaged: `keep` is given, and the list of an earlier backup is damaged.
        StoreNotFound: the home does not exist.
        StoreLocked: another backup is in progress, or an import held the ledger's lock for too long.
        LedgerDamaged: the ledger lacks something, or holds other bytes than were written; no backup was made.
        SnapshotDamaged: a served snapshot has other files than its manifest says; no backup was made.
        DiskFull: the folder has no room for what is new.
    """
    target = BackupFolder(where)
    target.storage.require_usable(store.home)
    if not isinstance(target.storage, FolderStorage) and not target.numbers():  # a folder has locks of the system
        require_conditional_puts(target.storage, BACKUPS.mark)
    with captured(store) as found, target.storage.locked(store.home, f"process {os.getpid()} (memstate backup)"):
        earlier = [target.read(number) for number in target.numbers()] if keep is not None else []
        copying = _copied(store.home, target, found)
        backup = _listed(store.home, target, found, at, copying.files)
        target.write(backup)
        note = Note(backup.number, iso(at), target.storage.where)
        replace_file(store.home.last_backup, msgjson.encode(note))
        removed = [] if keep is None else _remove(target, [*earlier, backup], keep)
    return backup, copying, removed


def last_backup(home: Home) -> Note | None:
    """The note on a home's last backup; None if there was none or the note is damaged."""
    try:
        return msgjson.decode(home.last_backup.read_bytes(), type=Note)
    except (OSError, ValueError):
        return None


def _copied(home: Home, target: BackupFolder, found: Captured) -> Transferred:
    objects = target.objects
    planned = list(with_digests(home, sources(home, found), _trusted(target, home)))
    needed = {file.sha256: file.size for _, file in planned if not objects.has(file.sha256, file.size)}
    target.storage.require_room(sum(needed.values()))
    return transfer(home, planned, lambda file: objects.has(file.sha256, file.size), objects.add, "copy")


def _trusted(target: BackupFolder, home: Home) -> dict[tuple[str, FileState], str]:
    """The digests of files that have the size and time that the newest backup of this home recorded."""
    try:
        newest = target.read()
    except (BackupNotFound, BackupDamaged):
        return {}
    latest = newest.at.timestamp() * 1e9 - _SETTLED_NS
    files = newest.files if newest.home == str(home.root) else []
    return {(file.path, FileState(file.size, file.modified)): file.sha256 for file in files if file.modified < latest}


def _listed(home: Home, target: BackupFolder, found: Captured, at: datetime, files: list[BackupFile]) -> Backup:
    hashes = {snapshot.manifest.shard: snapshot.manifest.state_hash for snapshot in found.served}
    return Backup(
        number=1 + max(target.numbers(), default=0),
        at=at,
        home=str(home.root),
        snapshots=[snapshot.name for snapshot in found.served],
        state_hash=combined_state_hash(hashes) if hashes else None,
        files=files,
        left_out=found.left_out,
    )


def _remove(target: BackupFolder, known: list[Backup], keep: int) -> list[int]:
    """Removes all but the newest backups of a home, then the objects that no backup of the folder lists."""
    own = [backup.number for backup in known if backup.home == known[-1].home]
    removed = own[:-keep]
    target.remove(removed)
    target.objects.keep_only({file.sha256 for each in known if each.number not in removed for file in each.files})
    return removed
