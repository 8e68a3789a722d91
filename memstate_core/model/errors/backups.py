"""Backups cannot be made, read or restored as asked."""

from __future__ import annotations

from collections.abc import Sequence

from memstate_core.model.errors.base import MemstateError


class BackupRefused(MemstateError):
    """A folder or URL cannot take a backup."""

    exit_code = 2

    def __init__(self, folder: str, problem: str) -> None:
        super().__init__(
            f"{folder} cannot hold backups: {problem}. Expected a folder, or a URL of file://, s3://, gs:// or az://, "
            "that is empty, does not exist yet, or holds backups of `memstate backup`. Nothing was written.",
            folder=folder,
            problem=problem,
        )


class BackupNotFound(MemstateError):
    """A folder holds no backup, or none of this number."""

    def __init__(self, folder: str, found: Sequence[int], wanted: int | None = None) -> None:
        what = "no backup" if wanted is None else f"no backup {wanted}"
        listed = ", ".join(map(str, found)) or "none"
        super().__init__(
            f"{folder} holds {what} (found: {listed}). `memstate backup DIR` makes one, `memstate backup DIR --list` "
            "shows those of a folder.",
            folder=folder,
            found=[*found],
            wanted=wanted,
        )


class BackupDamaged(MemstateError):
    """A backup lacks something, or holds other bytes than were written."""

    exit_code = 4
    _SHOWN = 5

    def __init__(self, backup: str, problems: Sequence[str]) -> None:
        shown = [*problems[: self._SHOWN], *([f"{len(problems) - self._SHOWN} more"] * (len(problems) > self._SHOWN))]
        super().__init__(
            f"{backup} is damaged: {'; '.join(shown)}. Nothing was restored or removed. Restore another backup "
            "(`memstate restore-backup DIR --backup N`). If the store still exists, remove the files named here and "
            "run `memstate backup DIR`, which copies them again.",
            backup=backup,
            problems=[*problems],
        )


class BackupUnreachable(MemstateError):
    """Object storage with backups does not answer, refuses, or sent something else than it was asked for."""

    def __init__(self, where: str, problem: str) -> None:
        super().__init__(
            f"{where} failed: {problem}. No backup was added and nothing was restored. Check the address, and in the "
            "environment the credentials, region and endpoint; then run the same command again, which goes on with "
            "what was sent.",
            where=where,
            problem=problem,
        )


class CloudUnavailable(MemstateError):
    """The package that speaks with object storage is missing."""

    def __init__(self, where: str) -> None:
        super().__init__(
            f"{where} needs the package obstore, which is not installed. Run pip install 'memstate[cloud]', or name a "
            "folder.",
            where=where,
        )


class RestoreRefused(MemstateError):
    """A backup cannot be restored into a folder."""

    exit_code = 2

    def __init__(self, home: str, problem: str) -> None:
        super().__init__(
            f"nothing can be restored into {home}: {problem}. Expected a folder that is empty or does not exist yet; "
            "pass another --home DIR, or move this one away first. Nothing was changed.",
            home=home,
            problem=problem,
        )
