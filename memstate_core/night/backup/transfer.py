"""Sends the files of a backup or of a checkout: those that the other side lacks, each content once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from memstate_core.ingest.unfinished import FileState, state_of
from memstate_core.model.progress import tracked
from memstate_core.night.backup.folder import BackupFile, escaped
from memstate_core.night.backup.sources import Source
from memstate_core.state.files import file_digest
from memstate_core.state.home import Home
from memstate_core.storage.concurrent_requests import at_once

Planned = tuple[Source, BackupFile]
Send = Callable[[Path, str | None], tuple[str, int]]
"""Sends a file unless it has another digest than expected; returns its digest and size, as `Storage.add` does."""


@dataclass
class Transferred:
    """What was sent, and what the other side had already.

    Attributes:
        files: every file, as it is there now.
        sent: those whose contents were sent.
    """

    files: list[BackupFile] = field(default_factory=list)
    sent: list[BackupFile] = field(default_factory=list)

    @property
    def sent_bytes(self) -> int:
        """The bytes of the contents that were sent."""
        return sum(file.size for file in self.sent)


def with_digests(
    home: Home, found: Iterable[Source], trusted: Mapping[tuple[str, FileState], str]
) -> Iterator[Planned]:
    """The files with their digests; one without a record that is gone meanwhile is left out.

    Args:
        home: the home of the store.
        found: the files.
        trusted: digests by path and state of the file, which need not be computed again.

    Raises:
        LedgerDamaged: a file of the ledger is missing; SnapshotDamaged: one of a served snapshot is.
    """
    for source in found:
        path, state = escaped(source.path), state_of(source.file)
        try:
            if state is None:
                raise FileNotFoundError
            digest = source.sha256 or trusted.get((path, state)) or file_digest(source.file)
        except FileNotFoundError:
            if source.owner is not None:
                raise source.damage(home, "is missing") from None
            continue
        yield source, BackupFile(path, state.size, digest, state.modified)


def transfer(
    home: Home, planned: list[Planned], has: Callable[[BackupFile], bool], send: Send, phase: str
) -> Transferred:
    """Sends what is missing, several contents at a time.

    Args:
        home: the home of the store.
        planned: the files with their digests.
        has: whether the other side has the content of a file.
        send: sends a file; it is called in several threads.
        phase: what progress is reported as.

    Raises:
        LedgerDamaged: a file of the ledger is not as it was written; SnapshotDamaged: one of a served snapshot is not.
    """
    done, new = Transferred(), set[str]()

    def keep(sent: BackupFile | None) -> BackupFile | None:
        if sent is not None:
            new.add(sent.sha256)
            done.sent.append(sent)
        return sent

    missing = {file.sha256: (source, file) for source, file in planned if not has(file)}
    size = sum(file.size for _, file in missing.values())
    sending = zip(missing.values(), at_once(lambda each: _sent(home, *each, send), missing.values()), strict=True)
    for _, sent in tracked(sending, phase, size, "bytes", lambda each: each[0][1].size):
        keep(sent)
    for source, file in planned:
        is_there = file.sha256 in new or file.sha256 not in missing
        kept = file if is_there else keep(_sent(home, source, file, send))  # it changed meanwhile
        done.files += [] if kept is None else [kept]
    return done


def _sent(home: Home, source: Source, file: BackupFile, send: Send) -> BackupFile | None:
    """Sends a file; one without an owner is taken as it is found, if it still is."""
    expected = None if source.owner is None else file.sha256
    try:
        digest, size = send(source.file, expected)
    except FileNotFoundError:
        if expected is not None:
            raise source.damage(home, "is missing") from None
        return None
    if expected not in (None, digest):
        raise source.damage(home, f"has SHA-256 {digest}, written was {expected}")
    return BackupFile(file.path, size, digest, file.modified)
