"""Sends the state of a checkout to the URL: contents that are new, then the list, then the head, by its lease.

What is sent is what a backup would capture: the state that a kill at this moment would leave, with an unfinished run
discarded.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from msgspec import structs

from memstate_core.ingest.accesses.journal_segments import COMPLETE
from memstate_core.ingest.dumps import dumps_in
from memstate_core.ingest.unfinished import FileState, state_of
from memstate_core.night.backup.capture import Captured, captured
from memstate_core.night.backup.folder import escaped
from memstate_core.night.backup.transfer import transfer, with_digests
from memstate_core.night.checkout.note import Note
from memstate_core.night.checkout.parts import Kind, captured_parts, kind_of, local_parts
from memstate_core.run.store import Store
from memstate_core.state.erasure_mark import erasures
from memstate_core.state.home import Home
from memstate_core.state.snapshots import combined_state_hash
from memstate_core.storage.head import Contents, RemoteFile, State
from memstate_core.storage.lease import Lease

_CAPTURE = "send"
_SETTLED_NS = 2_000_000_000
"""A file that changed so shortly before the earlier state was captured may have changed again within its tick."""


def send_state(store: Store, contents: Contents, lease: Lease, note: Note, at: datetime) -> Note:
    """Makes what the checkout holds the state of the store; does nothing at the URL if that is its state.

    Args:
        store: the store, locked.
        contents: the contents at the URL.
        lease: its lease.
        note: the note of the checkout, which has the state at the URL before.
        at: the machine's time.

    Returns:
        The note of the checkout from now on.

    Raises:
        LeaseLost: another writer took the lease; the state at the URL was not changed.
        StoreUnreachable: the storage does not answer; the state was not changed, or it was at the last request.
        LedgerDamaged: the ledger is not as it was written; the state was not changed.
        SnapshotDamaged: a served snapshot is not as it was written; the state was not changed.
    """
    with captured(store, name=_CAPTURE, absent=note.absent) as found:
        files = [*_sent(store.home, found, contents, lease, note), *_kept_there(store, note)]
        if _key(files) == _key(note.files) and lease.state is not None:
            return structs.replace(note, settled=_settled(store.home, note.files))
        number = 1 + (lease.state.number if lease.state is not None else 0)
        hashes = {each.manifest.shard: each.manifest.state_hash for each in found.served}
        state = State(
            number=number,
            fence=lease.fence,
            sha256=contents.send_list(files, number, lease.fence),
            state_hash=combined_state_hash(hashes) if hashes else None,
            erasures=erasures(store.home),
            at=at,
        )
    lease.commit(state, store.layout)
    contents.remove(named(note.state, note.files) - named(state, files))
    settled = _settled(store.home, files)
    return structs.replace(note, store=lease.store, state=state, files=files, settled=settled)


def named(state: State | None, files: list[RemoteFile]) -> set[str]:
    """The names at the URL that a state consists of."""
    return {file.name for file in files} | ({state.list_name} if state is not None else set())


def has_input(home: Home, note: Note) -> bool:
    """Whether a home has input that the state at the URL does not have."""
    known = {file.path for file in note.files}
    segments = home.accesses.glob(f"*{COMPLETE}") if home.accesses.is_dir() else ()
    dumps = dumps_in(home.inbox) if home.inbox.is_dir() else ()
    return any(escaped(path.relative_to(home.root)) not in known for path in (*dumps, *segments))


def _sent(home: Home, found: Captured, contents: Contents, lease: Lease, note: Note) -> list[RemoteFile]:
    """The files of the state, after those were sent that are not at the URL."""
    there = {file.sha256: file.fence for file in note.files}
    planned = list(with_digests(home, captured_parts(home, found), _trusted(note)))

    def send(source: Path, expected: str | None) -> tuple[str, int]:
        return contents.send(source, expected, lease.fence)

    sent = transfer(home, planned, lambda file: file.sha256 in there, send, "send")
    return [
        RemoteFile(file.path, file.size, file.sha256, file.modified, there.get(file.sha256, lease.fence))
        for file in sent.files
    ]


def _kept_there(store: Store, note: Note) -> list[RemoteFile]:
    """The files of shards whose snapshots are not here, as the state at the URL has them."""
    roots = tuple(f"snapshots/{shard}/" for shard in note.absent if shard in store.shards)
    return [file for file in note.files if file.path.startswith(roots)] if roots else []


def _trusted(note: Note) -> dict[tuple[str, FileState], str]:
    """The digests of files that have the size and time that the state at the URL recorded."""
    if note.state is None:
        return {}
    latest = note.state.at.timestamp() * 1e9 - _SETTLED_NS
    return {
        (file.path, FileState(file.size, file.modified)): file.sha256 for file in note.files if file.modified < latest
    }


def _settled(home: Home, files: list[RemoteFile]) -> dict[str, FileState]:
    """Files that were read and are not part of the state, since the ledger has their rows."""
    known = {file.path for file in files}
    read = (path for path in local_parts(home) if kind_of(path) is Kind.READ and escaped(path) not in known)
    found = ((path, state_of(home.root / path)) for path in read)
    return {escaped(path): state for path, state in found if state is not None}


def _key(files: list[RemoteFile]) -> set[tuple[str, str]]:
    return {(file.path, file.sha256) for file in files}
