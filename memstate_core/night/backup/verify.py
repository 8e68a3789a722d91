"""Verification of backups: the digest of every object, or the whole proof, on a restored copy."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

from memstate_core.model.errors import BackupDamaged, BackupNotFound, StoreNotFound
from memstate_core.night.backup.folder import Backup, BackupFolder
from memstate_core.night.backup.restore import restore_files
from memstate_core.night.verify import Verdict, verify_store
from memstate_core.run.store import open_store
from memstate_core.state.files import require_space


def verify_backups(root: Path, *, deep: bool) -> dict[str, list[Verdict]]:
    """The verdicts on every backup of a folder, by its name, after reading every object once.

    Args:
        root: the folder of the backups.
        deep: also restore the newest backup into a temporary folder, and verify the store there: ledger, digests,
            index, conditions and the fold of the ledger.

    Raises:
        BackupNotFound: the folder holds no backup.
        DiskFull: the temporary folder has no room for the restored copy.
    """
    folder = BackupFolder(root)
    numbers = folder.numbers()
    if not numbers:
        raise BackupNotFound(str(root), numbers)
    problem = cache(folder.objects.problem)
    found: dict[str, list[Verdict]] = {}
    for number in numbers:
        name = f"backup {number}"
        try:
            backup = folder.read(number)
        except BackupDamaged as error:
            found[name] = [_verdict("list", error.facts["problems"])]
            continue
        bad = [f"{text} ({file.path})" for file in backup.files if (text := problem(file.sha256))]
        found[name] = [_verdict("list", []), _verdict("file digests", bad)]
        if deep and number == numbers[-1] and not bad:
            found |= _restored(folder, backup)
    return found


def _restored(folder: BackupFolder, backup: Backup) -> dict[str, list[Verdict]]:
    name = f"backup {backup.number}"
    with tempfile.TemporaryDirectory() as scratch:
        require_space(Path(scratch), backup.size)
        restore_files(folder, backup, Path(scratch))
        store = open_store(Path(scratch))
        try:
            return {f"{name}, {shown}": verdicts for shown, verdicts in verify_store(store).items()}
        except StoreNotFound:
            return {f"{name}, no snapshot": [_verdict("ledger", store.ledger.chain.damage())]}


def _verdict(name: str, problems: list[str]) -> Verdict:
    return Verdict(name, not problems, "; ".join(problems))
