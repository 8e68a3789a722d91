"""Verification of backups: the digest of every object, or the whole proof, on restored copies."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

from memstate_core.model.errors import BackupDamaged, BackupNotFound, StoreNotFound
from memstate_core.model.progress import tracked
from memstate_core.night.backup.folder import Backup, BackupFolder
from memstate_core.night.backup.restore import restore_files
from memstate_core.night.verify import Verdict, chain_verdicts, verify_store
from memstate_core.run.store import open_store
from memstate_core.state.files import require_space
from memstate_core.state.ledger.chain import CHAIN, parsed_chain
from memstate_core.storage.storage import Unreadable, object_name


def verify_backups(where: Path | str, *, deep: bool) -> dict[str, list[Verdict]]:
    """The verdicts on every backup of a folder, by its name, after reading every object once.

    Args:
        where: the folder of the backups, or its URL.
        deep: also restore each backup into a temporary folder, one after the other, and verify the store there:
            ledger, digests, index, conditions, the fold of the ledger, and the kept snapshots that are not served.

    Raises:
        BackupNotFound: the folder holds no backup.
        BackupUnreachable: the object storage does not answer, or refuses.
        DiskFull: the temporary folder has no room for the restored copy.
    """
    folder = BackupFolder(where)
    numbers = folder.numbers()
    if not numbers:
        raise BackupNotFound(folder.storage.where, numbers)
    problem = cache(folder.objects.problem)
    found: dict[str, list[Verdict]] = {}
    for number in tracked(numbers, "verify", len(numbers), "backups"):
        name = f"backup {number}"
        try:
            backup = folder.read(number)
        except BackupDamaged as error:
            found[name] = [_verdict("list", error.facts["problems"])]
            continue
        bad = [f"{text} ({file.path})" for file in backup.files if (text := problem(file.sha256))]
        found[name] = [_verdict("list", []), _verdict("file digests", bad), *_beginnings(folder, backup)]
        if deep and not bad:
            found |= _restored(folder, backup)
    return found


def _beginnings(folder: BackupFolder, backup: Backup) -> list[Verdict]:
    """What the ledger's chain in a backup says of chains that were lost; its object is compared elsewhere."""
    sha256 = next((file.sha256 for file in backup.files if file.path == f"ledger/{CHAIN}"), None)
    try:
        content = b"" if sha256 is None else b"".join(folder.storage.blocks(object_name(sha256)))
    except Unreadable:
        return []
    return chain_verdicts(parsed_chain(content).begun)


def _restored(folder: BackupFolder, backup: Backup) -> dict[str, list[Verdict]]:
    name = f"backup {backup.number}"
    with tempfile.TemporaryDirectory() as scratch:
        require_space(Path(scratch), backup.size)
        restore_files(folder, backup, Path(scratch))
        store = open_store(Path(scratch))
        try:
            return {f"{name}, {shown}": verdicts for shown, verdicts in verify_store(store, deep=True).items()}
        except StoreNotFound:
            return {f"{name}, no snapshot": [_verdict("ledger", store.ledger.chain.damage())]}


def _verdict(name: str, problems: list[str]) -> Verdict:
    return Verdict(name, not problems, "; ".join(problems))
