"""Brings a home to the state at its URL, for a command that holds the lease, and without it for one that only reads."""

from __future__ import annotations

import logging
import os

from msgspec import structs

from memstate_core.model.errors import RemoteStoreDamaged, StoreUrlRefused
from memstate_core.night.checkout.bring import Brought, bring
from memstate_core.night.checkout.note import Note, new_note, read_checkout, store_url, write_checkout
from memstate_core.night.checkout.shards_here import ShardsHere, chosen, has_more, snapshot_files
from memstate_core.run.store import Store
from memstate_core.state.absent import absent_shards
from memstate_core.state.lock import exclusive
from memstate_core.storage.head import Contents, Head, RemoteFile, State, read_head
from memstate_core.storage.purpose import STORE
from memstate_core.storage.storage import storage

_ATTEMPTS = 3
_log = logging.getLogger("memstate.store")


def pull(store: Store, *, check: bool = False) -> tuple[State | None, Brought]:
    """Brings the checkout to the state at the URL without its lease; what only this home has stays for the next writer.

    Args:
        store: the store.
        check: compare every file of the checkout with its digest, and fetch those that differ.

    Returns:
        The state, None if nothing is there yet, and what was done.

    Raises:
        StoreUrlRefused: the settings name no URL, or it holds another store, or an older state than this home had.
        StoreLocked: a command writes in this home.
        StoreUnreachable: the storage does not answer.
        RemoteStoreDamaged: what lies at the URL is not as it was sent.
    """
    where = store_url(store)
    if not where:
        raise StoreUrlRefused("store.url", "it is not set")
    place = storage(where, STORE)
    with exclusive(store.home.lock, f"process {os.getpid()} (memstate pull)"):
        for attempt in range(_ATTEMPTS):
            found = read_head(place)
            note = opened_note(store, where, found)
            if found is None or found[0].state is None:
                return None, Brought()
            head = found[0]
            try:
                note, done = brought(store, Contents(where), note, head.store, head.state, check=check)
            except RemoteStoreDamaged:  # unless a writer has moved on meanwhile, and removed what it names no more
                after = read_head(place)
                if attempt == _ATTEMPTS - 1 or after is None or after[0].state == head.state:
                    raise
                continue
            write_checkout(store.home, note)
            return head.state, done
    raise AssertionError


def fetch_absent(store: Store) -> None:
    """Brings the snapshots that are not here, for a command that reads all; does nothing where all are here.

    Raises:
        MemstateError: as for `pull`.
    """
    if absent_shards(store.home):
        pull(store)


def opened_note(store: Store, where: str, found: tuple[Head, str] | None) -> Note:
    """The note of the checkout, or a new one where this home may become a checkout of what is at the URL.

    Raises:
        StoreUrlRefused: it may not, or the URL does not hold its store.
    """
    note = read_checkout(store.home)
    head = None if found is None else found[0]
    if head is None:
        if note is not None and note.state is not None and note.where == where:
            problem = f"nothing is there any more. To send the store anew from here, remove {store.home.checkout}"
            raise StoreUrlRefused(where, problem)
        return new_note(where)
    here = store.layout
    if head.layout == here.number and head.shards != here.count:
        has = f"it has {head.shards} shard{'s' * (head.shards != 1)}"
        raise StoreUrlRefused(where, f"{has}, the settings of this home {here.count}")
    own = note is None or (note.state is None and note.first and head.origin != note.id)
    if own and head.state is not None and store.home.ledger.exists():
        raise StoreUrlRefused(where, f"a store is there already, and {store.home.root} holds one of its own")
    if note is not None and note.store in ("", head.store):
        require_same(where, note, head.store, head.state)
        return structs.replace(note, where=where)
    if note is not None:
        raise StoreUrlRefused(where, f"it holds another store than {note.where}, of which this home is a checkout")
    return new_note(where)


def require_same(where: str, note: Note, store: str, state: State | None) -> None:
    """Refuses a state that is older than the one this home has.

    Raises:
        StoreUrlRefused: it is, as after a bucket was restored.
    """
    had, there = (0 if each is None else each.number for each in (note.state, state))
    if note.store == store and there < had:
        problem = f"its state is number {there}, this home had number {had}. If that was lost on purpose, "
        raise StoreUrlRefused(where, problem + "begin a new home, and move this one away")


def brought(
    store: Store,
    contents: Contents,
    note: Note,
    store_id: str,
    state: State | None,
    *,
    check: bool = False,
    wanted: ShardsHere | None = None,
) -> tuple[Note, Brought]:
    """Brings a home to a state, unless it has it already; the caller holds the lock of the home.

    Args:
        store: the store.
        contents: what lies at the URL.
        note: the note of the checkout.
        store_id: what distinguishes the store from others.
        state: the state; None if nothing is there yet.
        check: compare every file of the checkout with its digest.
        wanted: which shards it shall have; None for all.

    Returns:
        The note of the checkout from now on, and what was done.
    """
    if state is None:
        return structs.replace(note, store=store_id), Brought()
    is_here = note.state == state and not note.dirty and not check
    files = note.files if is_here else contents.files(state)
    absent, used = _shards(store, contents, note, files, wanted, is_here=is_here)
    if is_here and absent == note.absent:
        return structs.replace(note, used=used), Brought()
    less = sorted({*absent, *note.absent})
    note = structs.replace(note, store=store_id, dirty=True, absent=less, used=used)
    write_checkout(store.home, note)
    erased = state.erasures > (0 if note.state is None else note.state.erasures)
    only = less if is_here else None
    done = bring(store.home, note.where, contents, note, files, erased=erased, check=check, absent=absent, only=only)
    return structs.replace(note, state=state, files=files, dirty=False, absent=absent), done


def _shards(
    store: Store,
    contents: Contents,
    note: Note,
    files: list[RemoteFile],
    wanted: ShardsHere | None,
    *,
    is_here: bool,
) -> tuple[list[str], list[str]]:
    """The shards that the home shall not have, and those that had a night in it.

    One of which this home may have the only copy stays: the URL lacks contents, or never got a snapshot.
    """
    if wanted is None:
        return [], note.used
    choice, there = chosen(store.home, note, files, wanted), snapshot_files(files)
    lacking = {shard for shard in choice.dropped if contents.lacking(there[shard].values())}
    for shard in sorted(lacking):
        _log.warning("%s lacks contents of shard %s, so they stay here", note.where, shard)
    unsent = {shard for shard in choice.dropped if is_here and has_more(store.home, shard, there[shard])}
    return [shard for shard in choice.absent if shard not in lacking | unsent], choice.used
