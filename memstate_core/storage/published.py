"""How snapshots lie at a URL: what the store that publishes writes there, and replicas read.

    store.json                the number of shards, how often it was changed, and what holds for all of them
    keys.json                 the hashes of the store's API keys
    inbox/, accesses/         what replicas accepted for the store (`memstate_core.storage.remote_inbox`)
    shards/s0/CURRENT         the kept snapshots of a shard, the served one first, by the digests of their manifests
    shards/s0/objects/ab/…    contents named after their SHA-256: manifests, and the files that they name

After a change of the number of shards all new shards are published before store.json names them, so that replicas
switch at once; the earlier ones are removed then.

Invariant: CURRENT moves by a conditional put, last of all, so what it names was there when it moved.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from msgspec import Struct, ValidationError, convert, structs
from msgspec import json as msgjson

from memstate_core.model.scope import Layout
from memstate_core.storage.purpose import Purpose
from memstate_core.storage.storage import Storage, below, storage

STORE, CURRENT, FORMAT = "store.json", "CURRENT", 1
KEYS = "keys.json"
_RESHARDED = 2
"""The format of a store whose number of shards was changed, which versions before that do not follow."""


class StoreNote(Struct, frozen=True):
    """What is published at a URL.

    Attributes:
        shards: the number of shards of the store.
        format: the version of this form.
        layout: how often the number of shards was changed.
        erasures: how many erasures of the store no shard has anything from before; CURRENT of each was moved then.
        writer: as for `Published`, for replicas that have no shard yet.
        accepts_writes: as for `Published`.
    """

    shards: int
    format: int = FORMAT
    layout: int = 0
    erasures: int = 0
    writer: str = ""
    accepts_writes: bool = False

    def of(self, layout: Layout) -> StoreNote:
        """The note with these shards."""
        shape = _RESHARDED if layout.number else FORMAT
        return structs.replace(self, shards=layout.count, format=shape, layout=layout.number)

    @property
    def shard_layout(self) -> Layout:
        """The shards of the store."""
        return Layout(self.shards, self.layout)


class Entry(Struct, frozen=True):
    """A snapshot.

    Attributes:
        number: its number in its shard.
        manifest: the SHA-256 of its manifest, which names the object that holds it.
        written_at: when it was written, by the clock of the machine that did.
    """

    number: int
    manifest: str
    written_at: datetime

    @property
    def key(self) -> tuple[int, str]:
        """What distinguishes it from other snapshots of its shard."""
        return self.number, self.manifest


class Published(Struct, frozen=True):
    """The content of CURRENT.

    Attributes:
        snapshots: the kept snapshots, the served one first; empty if nothing is served.
        erasures: how many erasures the store has had; replicas let go of what is older when it grows.
        writer: where the store takes writes, as replicas name it to their callers; empty if unknown.
        accepts_writes: whether the store fetches what replicas leave in the inbox at the URL.
    """

    snapshots: list[Entry] = []
    erasures: int = 0
    writer: str = ""
    accepts_writes: bool = False

    @property
    def served(self) -> Entry | None:
        """The snapshot that is served."""
        return self.snapshots[0] if self.snapshots else None


def shard_storage(where: Path | str, shard: str, purpose: Purpose) -> Storage:
    """The storage of one shard of what is published at an address."""
    return storage(below(where, f"{purpose.mark}/{shard}"), purpose)


def read_note(place: Storage, purpose: Purpose) -> tuple[StoreNote, str] | None:
    """The note at the root of a publication, with its version; None if there is none.

    Raises:
        PublicationRefused: it is no such note, or of another format.
    """
    found = place.read(STORE)
    if found is None:
        return None
    try:
        note = convert(msgjson.decode(found[0]), StoreNote)
    except (ValidationError, ValueError) as error:
        raise purpose.refused(place.where, f"{STORE}: {error}") from None
    if note.format not in (FORMAT, _RESHARDED):
        raise purpose.refused(place.where, f"it has format {note.format}, expected {FORMAT} or {_RESHARDED}")
    return note, found[1]


def read_current(place: Storage, purpose: Purpose) -> tuple[Published, str] | None:
    """CURRENT of a shard, with its version; None before the first snapshot.

    Raises:
        PublicationRefused: it is not as `memstate publish` writes it.
    """
    found = place.read(CURRENT)
    if found is None:
        return None
    try:
        return convert(msgjson.decode(found[0]), Published), found[1]
    except (ValidationError, ValueError) as error:
        raise purpose.refused(place.where, f"{CURRENT}: {error}") from None
