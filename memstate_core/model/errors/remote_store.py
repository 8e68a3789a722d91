"""Errors of a store that is kept at a URL."""

from __future__ import annotations

from collections.abc import Sequence

from memstate_core.model.errors.base import MemstateError


class StoreUrlRefused(MemstateError):
    """A URL cannot hold the store of this home, or holds another one."""

    exit_code = 2

    def __init__(self, where: str, problem: str) -> None:
        super().__init__(
            f"{where} is not where this home keeps its store: {problem}. Expected a folder or prefix that is empty, "
            "does not exist yet, or holds the store of which this home is a checkout. Nothing was changed; see "
            "store.url in memstate.toml.",
            where=where,
            problem=problem,
        )


class ConditionalPutsIgnored(MemstateError):
    """The storage of a URL puts objects whose condition does not hold, so two writers would overwrite each other."""

    exit_code = 2

    def __init__(self, where: str, problem: str) -> None:
        super().__init__(
            f"{where} cannot keep writers apart: {problem}. Expected storage that honours conditional puts "
            "(`If-None-Match`, `If-Match`), as Amazon S3, R2, MinIO and Azure do, behind proxies that pass on these "
            "headers. The objects of this trial were removed, and nothing else was written. Use such storage, or "
            "correct the proxy; `memstate doctor` tries it again.",
            where=where,
            problem=problem,
        )


class StoreUnreachable(MemstateError):
    """The storage of a store at a URL does not answer, refuses, or sends something else than it was asked for."""

    def __init__(self, where: str, problem: str) -> None:
        super().__init__(
            f"{where} failed: {problem}. The store there is as it was, or as this command left it; what this home has "
            "beyond that is discarded by its next command that writes, and its input is read again. Check the "
            "address, and in the environment the credentials, region and endpoint; then run the same command again.",
            where=where,
            problem=problem,
        )


class LeaseLost(MemstateError):
    """Another writer took the lease of a store at a URL, so the work of this one was not accepted there."""

    exit_code = 3

    def __init__(self, where: str, fence: int, taken: int, holder: str) -> None:
        super().__init__(
            f"{where} was not changed: this command held the lease number {fence}, which expired, and number {taken} "
            f"was taken by {holder or 'a writer that has ended'}. What it did here is discarded by the next command "
            "that writes, which reads its input again, so nothing is lost: run the same command again. If this "
            "happens without a pause of the machine, set store.lease_seconds higher.",
            where=where,
            fence=fence,
            taken=taken,
            holder=holder,
        )


class RemoteStoreDamaged(MemstateError):
    """A store at a URL lacks something, or holds other bytes than were written."""

    exit_code = 4
    _SHOWN = 5

    def __init__(self, where: str, problems: Sequence[str]) -> None:
        shown = [*problems[: self._SHOWN], *([f"{len(problems) - self._SHOWN} more"] * (len(problems) > self._SHOWN))]
        super().__init__(
            f"the store at {where} is damaged: {'; '.join(shown)}. This home was left on the state that it had. "
            "Restore these objects from a version or copy of the bucket; or take a home or a backup that is whole, and "
            "give it another, empty store.url.",
            where=where,
            problems=[*problems],
        )
