"""Backups cannot be made, read or restored as asked."""

from __future__ import annotations

from collections.abc import Sequence

from memstate_core.model.errors.base import MemstateError


class BackupRefused(MemstateError):
    """A folder cannot take a backup."""

    exit_code = 2

    def __init__(self, folder: str, problem: str) -> None:
        super().__init__(
            f"{folder} cannot hold backups: {problem}. Expected a folder on this machine or a mounted one that is "
            "empty, does not exist yet, or holds backups of `memstate backup`. Nothing was written.",
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
