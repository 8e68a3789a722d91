"""Erasures that a store made after a backup: what a restore must erase again.

They are looked for in the home of which the backup was made, in later backups of the same folder, and in a place that
the caller names. Invariant: a place that knows erasures and cannot be read refuses the restore.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from msgspec import MsgspecError

from memstate_core.model.errors import EraseRefused, ErasureNotRepeated
from memstate_core.night.backup.folder import Backup, BackupFolder, place
from memstate_core.night.erasure.certificate import Certificate
from memstate_core.night.erasure.reapply import certificates_in, erase_again
from memstate_core.run.store import Store
from memstate_core.state.files import make_folder
from memstate_core.state.home import Home
from memstate_core.state.ledger.erased_observations import ERASED
from memstate_core.state.ledger.ledger import Ledger


def repeat_erasures(
    folder: BackupFolder, backup: Backup, draft: Store, scratch: Path, more: Path | str | None
) -> list[int]:
    """Makes the erasures again in a restored backup that it is older than.

    Args:
        folder: the folder of the backups.
        backup: the one that was restored.
        draft: the store that was restored.
        scratch: a folder for files of later backups; it need not exist.
        more: another home, or folder or URL of backups, that may know erasures.

    Returns:
        The numbers of the certificates in the restored store, of what was erased.

    Raises:
        ErasureNotRepeated: they cannot be made again.
    """
    name, own = folder.name(backup.number), certificates_in(draft.home)
    done: list[Certificate] = []
    for source in _sources(folder, backup, draft, scratch, more):
        missing = [each for each in _certificates(name, source) if not _has(own, each)]
        if not missing:
            continue
        if not (source.ledger / ERASED).is_file():
            raise ErasureNotRepeated(name, len(missing), f"{source.ledger / ERASED} is missing")
        try:
            done += erase_again(draft, source.ledger, missing)
        except EraseRefused as error:
            raise ErasureNotRepeated(name, len(missing), error.facts["problem"]) from error
        own += missing
    return [certificate.number for certificate in done]


def _has(own: list[Certificate], certificate: Certificate) -> bool:
    return any((each.subject_hash, each.at) == (certificate.subject_hash, certificate.at) for each in own)


def _certificates(name: str, source: Home) -> list[Certificate]:
    try:
        return certificates_in(source)
    except (OSError, MsgspecError) as error:
        raise ErasureNotRepeated(name, 1, f"{source.erasures}: {error}") from error


def _sources(
    folder: BackupFolder, backup: Backup, draft: Store, scratch: Path, more: Path | str | None
) -> Iterator[Home]:
    """Homes, or parts of them, that may have made erasures since the backup."""
    if more is not None:
        other = BackupFolder(more)
        yield _extracted(other, other.read(), scratch / "named") if other.numbers() else Home(Path(more))
    home = Home(Path(backup.home))
    if home.ledger.is_dir() and _is_later(home, draft.home):
        yield home
    for number in reversed(folder.numbers()):
        if number > backup.number and (later := folder.read(number)).home == backup.home:
            yield _extracted(folder, later, scratch / str(number))
            return


def _is_later(home: Home, draft: Home) -> bool:
    """Whether a home at the place of the old one is that store; rewriting a ledger keeps the ids of runs."""
    runs = [Ledger(each.ledger).scan("transitions").select("run_id").unique().collect() for each in (draft, home)]
    return runs[0].join(runs[1], on="run_id", how="anti").is_empty()


def _extracted(folder: BackupFolder, backup: Backup, target: Path) -> Home:
    """The certificates of a backup and its record of what was erased, in a scratch folder laid out like a home."""
    wanted = (Path("erasures"), Path("ledger") / ERASED)
    for file in backup.files:
        path = place(file.path)
        if any(path.is_relative_to(each) for each in wanted):
            make_folder((target / path).parent)
            if problem := folder.objects.fetch(file.sha256, target / path):
                raise ErasureNotRepeated(folder.name(backup.number), 1, problem)
    return Home(target)
