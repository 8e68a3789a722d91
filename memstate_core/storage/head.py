"""How a store is kept at a URL.

    head/store.json           who may write, and which list of files is the store now
    head/shard-0003.json      who has the night of a shard in progress, where nights run side by side (`shard_lease`)
    data/7/lists/12-ab….json  the files of the twelfth state of the store, with the digest of each
    data/7/objects/ab/…       contents that the holder of the lease number 7 sent, named after their SHA-256

Invariants: `head/store.json` is replaced by a conditional put alone, so each change was made by somebody who had read
the one before. What it names was sent before it was put. A list names contents that the list before it names, or that
were sent under the number of its own lease. So what no list names is never named again, and may be removed at any time
by the holder of that number or of a later one, even if it wakes up late.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path

from msgspec import MsgspecError, Struct
from msgspec import json as msgjson

from memstate_core.model.errors import RemoteStoreDamaged, StoreUnreachable, StoreUrlRefused
from memstate_core.storage.held import Held
from memstate_core.storage.purpose import STORE
from memstate_core.storage.storage import OBJECTS, Storage, Unreadable, below, object_name, storage

HEAD, FORMAT = f"{STORE.mark}/store.json", 1
DATA = "data"
_NUMBERED = re.compile(rf"{DATA}/([0-9]+)/").match


class RemoteFile(Struct, frozen=True):
    """One file of a store at a URL.

    Attributes:
        path: its place below the home, escaped as in URLs.
        size: its bytes.
        sha256: their digest.
        modified: its modification time, in nanoseconds since 1970.
        fence: the number of the lease under which its content was sent.
    """

    path: str
    size: int
    sha256: str
    modified: int
    fence: int

    @property
    def name(self) -> str:
        """The name of its content at the URL."""
        return f"{DATA}/{self.fence}/{object_name(self.sha256)}"


class State(Struct, frozen=True):
    """One state of a store.

    Attributes:
        number: how many states there were before it, and this one.
        fence: the number of the lease under which its list was sent.
        sha256: the digest of its list.
        state_hash: the combined state hash of what it serves; None before the first night.
        erasures: how many erasures it has had.
        at: when it was captured, by the clock of the machine that did.
    """

    number: int
    fence: int
    sha256: str
    state_hash: str | None
    erasures: int
    at: datetime

    @property
    def list_name(self) -> str:
        """The name of its list at the URL."""
        return f"{DATA}/{self.fence}/{_list_name(self.number, self.sha256)}"


class Head(Held, frozen=True, kw_only=True):
    """The content of `head/store.json`: who holds the lease, and the state of the store.

    Attributes:
        store: what distinguishes the store from any other.
        shards: its number of shards.
        layout: how often that was changed.
        origin: the checkout that sent the first state; empty before.
        state: the state of the store; None before the first one.
        brief: whether the holder has it for a part of its work alone, so that others may wait for it.
        format: the version of this layout.
    """

    store: str
    shards: int
    layout: int = 0
    origin: str = ""
    state: State | None = None
    brief: bool = False
    format: int = FORMAT


def read_head(place: Storage) -> tuple[Head, str] | None:
    """The head of a store at a URL, with its version; None if there is no store.

    Raises:
        StoreUnreachable: the storage does not answer.
        StoreUrlRefused: it is of another version of memstate, or of something else.
    """
    found = place.read(HEAD)
    if found is None:
        return None
    try:
        head = msgjson.decode(found[0], type=Head)
    except MsgspecError as error:
        raise StoreUrlRefused(place.where, f"{HEAD}: {error}") from None
    if head.format != FORMAT:
        raise StoreUrlRefused(place.where, f"it has format {head.format}, expected {FORMAT}")
    return head, found[1]


class Contents:
    """The lists and contents of a store at a URL.

    Args:
        where: the URL.
    """

    def __init__(self, where: str) -> None:
        self._where = where
        self._root = storage(where, STORE)
        self._places: dict[int, Storage] = {}
        self._opening = threading.Lock()

    def send(self, source: Path, sha256: str | None, fence: int) -> tuple[str, int]:
        """Sends a file under the number of a lease; its digest and size, as `Storage.add` returns them."""
        return self._place(fence).add(source, sha256)

    def send_list(self, files: list[RemoteFile], number: int, fence: int) -> str:
        """Sends the list of a state; what was sent under this number before is durable then. Returns its digest."""
        content = msgjson.encode(files)
        digest = hashlib.sha256(content).hexdigest()
        self._place(fence).write(_list_name(number, digest), content)
        return digest

    def files(self, state: State) -> list[RemoteFile]:
        """The files of a state.

        Raises:
            RemoteStoreDamaged: its list is gone, or has other bytes.
            StoreUnreachable: the storage does not answer, or sends less than it has.
        """
        try:
            content = b"".join(self._root.blocks(state.list_name))
        except Unreadable as error:
            raise RemoteStoreDamaged(self._where, [f"{state.list_name} {error}"]) from None
        found = hashlib.sha256(content).hexdigest()
        if found != state.sha256:
            listed = self._root.sizes(state.list_name.rpartition("/")[0]).get(state.list_name)
            if listed is not None and listed != len(content):
                raise StoreUnreachable(self._where, f"{state.list_name}: {len(content):,} of {listed:,} bytes arrived")
            problem = f"{state.list_name} has SHA-256 {found}, expected {state.sha256}"
            raise RemoteStoreDamaged(self._where, [problem])
        return msgjson.decode(content, type=list[RemoteFile])

    def lacking(self, files: Iterable[RemoteFile]) -> list[str]:
        """The contents of files that are missing at the URL, or have another size; their bytes are not read."""
        sizes: dict[int, Mapping[str, int]] = {}
        found = []
        for file in files:
            if file.fence not in sizes:
                sizes[file.fence] = self._place(file.fence).sizes(OBJECTS)
            if sizes[file.fence].get(object_name(file.sha256)) != file.size:
                found.append(file.name)
        return found

    def place(self, file: RemoteFile) -> Storage:
        """The storage of the content of a file, where it is called by its digest."""
        return self._place(file.fence)

    def remove_unnamed(self, kept: set[str], fence: int) -> int:
        """Removes what was sent under a number of a lease, or an earlier one, and is not to be kept.

        Args:
            kept: the names of contents and lists that stay.
            fence: the number of the lease that the caller holds, or has held.

        Returns:
            How many were removed.
        """
        names = {name for name in self._root.sizes(DATA) if (found := _NUMBERED(name)) and int(found[1]) <= fence}
        unnamed = names - kept
        if unnamed:
            self._root.remove(unnamed)
        return len(unnamed)

    def remove(self, names: set[str]) -> None:
        """Removes contents that no list names any more."""
        if names:
            self._root.remove(names)

    def _place(self, fence: int) -> Storage:
        with self._opening:
            if fence not in self._places:
                self._places[fence] = storage(below(self._where, f"{DATA}/{fence}"), STORE)
            return self._places[fence]


def _list_name(number: int, sha256: str) -> str:
    """Lists of one number differ in name, since a put that got no answer may have named the earlier one."""
    return f"lists/{number}-{sha256[:16]}.json"
