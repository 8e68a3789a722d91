"""A subject cannot be erased."""

from __future__ import annotations

from memstate_core.model.errors.base import MemstateError


class ErasureNotRepeated(MemstateError):
    """A backup is older than an erasure of its store, which cannot be made again in it."""

    def __init__(self, backup: str, erasures: int, problem: str) -> None:
        super().__init__(
            f"nothing was restored: {backup} was made before {erasures} erasures of its store, which must be made "
            f"again in it, and cannot: {problem}. Restore a backup from after them (`memstate backup DIR --list`), or "
            "name a sound home or folder of backups that knows them with --erasures DIR.",
            backup=backup,
            erasures=erasures,
            problem=problem,
        )


class EraseRefused(MemstateError):
    """An erasure could not be complete, so it was not begun."""

    def __init__(self, problem: str) -> None:
        super().__init__(
            f"nothing was erased: {problem}. Let a run read them first (`memstate maintain`) or move them away, then "
            "erase again.",
            problem=problem,
        )


class RunHistoryShared(MemstateError):
    """Dagster's record of runs lies outside the home, and nobody said whether an erasure may clear it."""

    exit_code = 2

    def __init__(self, folder: str, runs: int) -> None:
        super().__init__(
            f"nothing was erased: {folder}, the folder of Dagster ($DAGSTER_HOME) outside this home, has a record of "
            f"{runs} runs that ended. It may quote the subject, and may be that of other homes as well, since no "
            "entry says whose it is. Pass --run-history clear to remove the whole record, or --run-history leave to "
            "keep it, which the certificate names as out of reach.",
            folder=folder,
            runs=runs,
        )


class SubjectAmbiguous(MemstateError):
    """Several scopes have an observation or a session of one id."""

    def __init__(self, kind: str, value: str, scopes: list[str]) -> None:
        named = ", ".join(scopes[:5]) + (" and more" if len(scopes) > 5 else "")
        super().__init__(
            f"nothing was erased: {len(scopes)} scopes have a {kind} {value!r} ({named}). Add --scope to name one.",
            kind=kind,
            value=value,
            scopes=scopes,
        )


class SubjectNotFound(MemstateError):
    """Nothing in the store belongs to a subject."""

    def __init__(self, kind: str, value: str) -> None:
        found = f"the store holds nothing of {kind} {value!r}. Expected the {kind} as observations name it"
        if kind == "topic":
            found = (
                f"no topic has the id or topic_key {value!r}. What was imported since the last night belongs to no "
                "topic yet: run `memstate maintain` first, or erase it with --observation"
            )
        super().__init__(
            f"nothing was erased: {found}; `memstate export` prints those of a store.", kind=kind, value=value
        )
