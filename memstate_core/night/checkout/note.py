"""What a checkout remembers: which state of the store at the URL it has, and what it holds beside that."""

from __future__ import annotations

import secrets

from msgspec import Struct
from msgspec import json as msgjson

from memstate_core.ingest.unfinished import FileState
from memstate_core.run.store import Store
from memstate_core.state.files import make_folder, replace_file
from memstate_core.state.home import Home
from memstate_core.storage.head import RemoteFile, State


class Note(Struct, frozen=True, kw_only=True):
    """The note of a checkout.

    Attributes:
        id: what distinguishes it from other checkouts.
        where: the URL.
        store: what distinguishes the store from others; empty before the first contact.
        state: the state that is here; None before the first one.
        files: the files of that state.
        first: whether this home was about to send the first state of the store.
        dirty: whether something else may be here: a command writes, or was killed.
        settled: files that were read, are not part of the state, and whose rows are in it, by their paths.
        absent: the shards of which CURRENT and the manifests alone are here, or something less than all.
        used: the shards that had a night here, the last one last.
    """

    id: str
    where: str
    store: str = ""
    state: State | None = None
    files: list[RemoteFile] = []
    first: bool = False
    dirty: bool = False
    settled: dict[str, FileState] = {}
    absent: list[str] = []
    used: list[str] = []


def store_url(store: Store) -> str:
    """Where a store is kept, if not in its home; empty for a home of its own, a clone or a temporary store."""
    return "" if store.home.local_only.exists() else store.settings.store.url


def new_note(where: str) -> Note:
    """The note of a home that is about to become a checkout."""
    return Note(id=secrets.token_hex(8), where=where)


def read_checkout(home: Home) -> Note | None:
    """The note of a home; None if it is no checkout, or the note is damaged."""
    try:
        return msgjson.decode(home.checkout.read_bytes(), type=Note)
    except (OSError, ValueError):
        return None


def write_checkout(home: Home, note: Note) -> None:
    """Replaces the note of a home."""
    make_folder(home.root)
    replace_file(home.checkout, msgjson.encode(note))
