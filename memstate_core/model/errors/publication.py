"""Errors of snapshots that are published to a URL, and of replicas that serve from there."""

from __future__ import annotations

from memstate_core.model.errors.base import MemstateError


class PublicationRefused(MemstateError):
    """A folder or URL cannot take, or does not hold, published snapshots."""

    exit_code = 2

    def __init__(self, where: str, problem: str) -> None:
        super().__init__(
            f"{where} is no place of published snapshots: {problem}. Expected a folder, or a URL of file://, s3://, "
            "gs:// or az://, that is empty, does not exist yet, or was written by `memstate publish`. Nothing was "
            "written.",
            where=where,
            problem=problem,
        )


class PublicationUnreachable(MemstateError):
    """Object storage does not answer, or refuses, so a snapshot was not published there."""

    def __init__(self, where: str, problem: str) -> None:
        super().__init__(
            f"{where} failed: {problem}. The store itself is unchanged and serves what it published; replicas serve "
            "what they had. Check the address, and in the environment the credentials, region and endpoint; then run "
            "`memstate publish`, which goes on with what was sent.",
            where=where,
            problem=problem,
        )


class PublicationConflict(MemstateError):
    """Another publisher moved CURRENT, or another copy of the store is published there; nothing was moved."""

    def __init__(self, where: str, problem: str) -> None:
        super().__init__(
            f"{where} was not changed: {problem}. One store publishes to a URL. If this is that store, the next night "
            "or `memstate publish` takes it up; if it replaces the other one for good, run `memstate publish "
            "--take-over`.",
            where=where,
            problem=problem,
        )


class SourceUnreachable(MemstateError):
    """The source of a replica does not answer, refuses, or lacks what its CURRENT names."""

    def __init__(self, where: str, problem: str) -> None:
        super().__init__(
            f"{where} cannot be read: {problem}. A replica goes on with the snapshot that it has, if any, and asks "
            "again. Check the address, and in the environment the credentials, region and endpoint; `memstate publish` "
            "in the home that writes sends what is missing.",
            where=where,
            problem=problem,
        )


class NotOnReplica(MemstateError):
    """A request needs the store that writes, and this server is a replica."""

    def __init__(self, what: str, writer: str = "") -> None:
        place = writer or "the server of the store that writes (its setting publish.writer_url names it here)"
        super().__init__(
            f"this server is a replica: it {what}. Send the request to {place}.",
            what=what,
            writer=writer or None,
        )


class InboxUnreachable(MemstateError):
    """The inbox at a URL, where replicas leave what they accept for the store, does not answer or refuses."""

    def __init__(self, where: str, problem: str) -> None:
        super().__init__(
            f"the inbox at {where} failed: {problem}. What was accepted lies there and is not lost; a request that got "
            "no answer has to be sent again. Check the address, and in the environment the credentials, region and "
            "endpoint; the next night or `memstate fetch-inbox` in the home that writes fetches what lies there.",
            where=where,
            problem=problem,
        )
