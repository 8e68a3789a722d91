"""The note at the root of a publication: the shards of the store, and what replicas have to know of all of them.

Invariant: it is replaced by a conditional put, and names other shards than before once all of these are published.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from msgspec import json as msgjson
from msgspec import structs

from memstate_core.model.errors import PublicationConflict, PublicationRefused
from memstate_core.model.scope import Layout
from memstate_core.run.store import Store
from memstate_core.state.erasure_mark import erasures
from memstate_core.state.home import Home
from memstate_core.storage.conditional_puts import require_conditional_puts
from memstate_core.storage.published import STORE, StoreNote, read_note
from memstate_core.storage.purpose import PUBLICATION
from memstate_core.storage.storage import Conflict, Storage, storage


def require_place(store: Store, where: str, layout: Layout, *, take_over: bool) -> tuple[StoreNote, str]:
    """The note at a URL and its version, which may name the shards that the store had before.

    Raises:
        PublicationRefused: the place holds other things, or a store of another number of shards.
        ConditionalPutsIgnored: nothing is there yet, and the storage could not keep publishers apart.
        PublicationConflict: another publisher was there first, or changed the number of shards.
        PublicationUnreachable: the storage does not answer, or refuses.
    """
    place = storage(where, PUBLICATION)
    found = read_note(place, PUBLICATION)
    if found is None:
        place.require_usable(store.home)
        require_conditional_puts(place, PUBLICATION.mark)
        first = _note_of(store, StoreNote(layout.count, erasures=erasures_begun(store.home)))
        with one_writer(place, STORE):
            return first, place.replace(STORE, msgjson.encode(first), None)
    there = found[0]
    if there.shard_layout != layout:
        if there.layout == layout.number:
            problem = f"it holds a store of {there.shards} shards, this one has {layout.count}"
            raise PublicationRefused(place.where, problem)
        if there.layout > layout.number and not take_over:
            problem = f"another copy of the store changed its number of shards, to {there.shards}"
            raise PublicationConflict(place.where, problem)
    return found


def _note_of(store: Store, before: StoreNote) -> StoreNote:
    section = store.settings.publish
    note = structs.replace(before, writer=section.writer_url, accepts_writes=section.accept_writes)
    return note.of(store.layout)


def write_note(store: Store, where: str, before: tuple[StoreNote, str], *, whole: bool) -> None:
    """Writes what holds for all shards, if it changed; other shards than before are named once all are published.

    Args:
        store: the store.
        where: the URL.
        before: the note that was read there, and its version.
        whole: all shards were published, so none has anything from before the last erasure.

    Raises:
        PublicationConflict: another publisher changed it since, and the number of shards is another one.
        PublicationUnreachable: the storage does not answer, or refuses.
    """
    place, (known, version) = storage(where, PUBLICATION), before
    note = _note_of(store, known)
    note = structs.replace(note, erasures=erasures_begun(store.home)) if whole else note
    if note.shard_layout != known.shard_layout:
        with one_writer(place, STORE):
            place.replace(STORE, msgjson.encode(note), version)
    elif note != known:
        with suppress(Conflict):  # another publisher of the store writes the same
            place.replace(STORE, msgjson.encode(note), version)


@contextmanager
def one_writer(place: Storage, name: str) -> Iterator[None]:
    """Raises PublicationConflict if what the block replaces is not as it was read."""
    try:
        yield
    except Conflict:
        problem = f"{name} was changed by another publisher since it was read"
        raise PublicationConflict(place.where, problem) from None


def erasures_begun(home: Home) -> int:
    """How many erasures a home has had, one that is about to get its certificate included."""
    return erasures(home) + home.begun_erasure.exists()
