"""Dumps that somebody put below `inbox/` at the URL of a store: each is taken by one command, on whichever machine.

A kill loses nothing and doubles nothing: a dump stays until the state of the store has it among what waits. If it is
taken twice, its rows are known by their content. One that cannot be read stays, with a warning, and stops nothing.
"""

from __future__ import annotations

import logging
import os
import re
from datetime import datetime, timedelta
from pathlib import PurePosixPath

from memstate_core.ingest.inbox import move_into
from memstate_core.run.store import Store
from memstate_core.state.files import make_folder, sync_path
from memstate_core.storage.folder import FolderStorage
from memstate_core.storage.remote_inbox import INBOX
from memstate_core.storage.storage import Listed, Storage, Unreadable

_DUMP = re.compile(rf"{INBOX}/(?!\.)[^/]+(?<!\.tmp)(?<!\.part)", re.IGNORECASE).fullmatch
_LONGEST_STEM, _LONGEST_SUFFIX = 150, 40
"""Bytes of a name that are kept, since object storage allows longer names than file systems."""

_log = logging.getLogger("memstate.store")


def dumps_at_url(place: Storage) -> dict[str, Listed]:
    """The dumps that lie there, by name; hidden files, those still being written and folders are none.

    Raises:
        StoreUnreachable: the storage does not answer.
    """
    return {name: each for name, each in place.listed(INBOX).items() if _DUMP(name)}


def take_dumps(store: Store, place: Storage, at: datetime) -> list[str]:
    """Copies the dumps at a URL into the inbox of the home, whose lock and lease the caller holds.

    A put of object storage is complete at once; a file of a folder waits until it has not changed for
    `ingest.inbox_settle_seconds`.

    Args:
        store: the store.
        place: the storage of its URL.
        at: the machine's time.

    Returns:
        The names of what was copied, to be removed when the state at the URL has it.

    Raises:
        StoreUnreachable: the storage does not answer.
        OSError: a copy cannot be written.
    """
    settled = at - timedelta(seconds=store.settings.ingest.inbox_settle_seconds)
    found = dumps_at_url(place)
    if isinstance(place, FolderStorage):
        found = {name: each for name, each in found.items() if each.written_at <= settled}
    return [name for name, each in sorted(found.items()) if _is_taken(store, place, name, each, settled)]


def _is_taken(store: Store, place: Storage, name: str, listed: Listed, settled: datetime) -> bool:
    """Copies a dump; it gets its place in the inbox when all its bytes are there, and as one that has settled."""
    draft = store.home.work("dumps") / _file_name(name)
    make_folder(draft.parent)
    try:
        with draft.open("wb") as file:
            for block in place.blocks(name):
                file.write(block)
            file.flush()
            os.fsync(file.fileno())
        arrived = draft.stat().st_size
        if arrived != listed.size:
            raise Unreadable(f"had {listed.size:,} bytes, of which {arrived:,} arrived")
    except Unreadable as problem:
        _log.warning("%s/%s %s; it stays there, and the next command tries again", place.where, name, problem)
        return False
    os.utime(draft, (min(listed.written_at, settled).timestamp(),) * 2)
    move_into(draft, store.home.inbox)
    sync_path(store.home.inbox)
    return True


def _file_name(name: str) -> str:
    """The last part of a name, shortened if a file cannot have it; the suffixes say how it is compressed."""
    path = PurePosixPath(name)
    suffix = "".join(path.suffixes[-2:])
    if len(suffix.encode()) > _LONGEST_SUFFIX:
        suffix = ""
    stem = path.name.removesuffix(suffix).encode()[:_LONGEST_STEM].decode("utf-8", "ignore")
    return f"{stem}{suffix}"
