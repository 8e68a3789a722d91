"""Fetches what replicas accepted for a store from the inbox at its URL, and removes it there once the ledger has it.

A kill at any moment loses nothing and doubles nothing: an object stays until its copy in the home was imported, and a
copy that is imported twice changes nothing, since observations are known by their content and segments by their digest.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

from msgspec import structs

from memstate_core.model.errors import InboxUnreachable, MemstateError, PublicationUnreachable
from memstate_core.model.progress import tracked
from memstate_core.night.checkout.session import commit_now
from memstate_core.night.publication.local_copies import keep_copy, local_copies
from memstate_core.night.publication.upload import require_own
from memstate_core.policy.settings import Settings
from memstate_core.run.store import Store
from memstate_core.state.fetch_note import FetchNote, read_fetch_note, write_fetch_note
from memstate_core.state.home import Home
from memstate_core.state.lock import exclusive
from memstate_core.storage.concurrent_requests import at_once
from memstate_core.storage.purpose import INBOX
from memstate_core.storage.remote_inbox import WaitingObject, content_of, waiting_objects
from memstate_core.storage.storage import Storage, Unreadable, storage

_WAIT_SECONDS = 60.0
_STALE = timedelta(days=1)


@dataclass(frozen=True)
class Fetched:
    """What was fetched.

    Attributes:
        fetched: how many objects got a copy in the home.
        removed: how many were removed at the URL, since the ledger has what they hold.
        waiting: how many lie there still.
        others: names there that no replica gives; they are left alone.
    """

    fetched: int
    removed: int
    waiting: int
    others: list[str]


def inbox_url(home: Home, settings: Settings) -> str | None:
    """Where a store fetches from; None if replicas accept nothing for it and never did."""
    known = read_fetch_note(home) is not None or settings.publish.accept_writes
    return settings.publish.url if known and settings.publish.url else None


def fetch_inbox(store: Store, where: str, at: datetime) -> Fetched:
    """Copies what lies in the inbox at a URL into the home, for the next import.

    Args:
        store: the store.
        where: the URL that it publishes to.
        at: the machine's time.

    Raises:
        InboxUnreachable: the storage does not answer, or refuses; what was copied stays.
        PublicationConflict: another copy of the store published there last; nothing was fetched.
        PublicationRefused: the address is none, or what is there is no publication.
        CloudUnavailable: the package for object storage is missing.
        StoreLocked: another process of this home has been fetching for a minute.
        OSError: a copy cannot be written.
    """
    with _looking(store, where, at) as look:
        look.sweep(at)
        removed = look.remove(local_copies(store.home).committed)
        held = local_copies(store.home).held
        fetched = look.copy([each for each in look.waiting if each.sha256 not in held])
        return Fetched(fetched, removed, len(look.waiting), look.others)


def release_imported(store: Store, where: str, *, all_copied: bool = False) -> int:
    """Removes what lies at a URL and is in the ledger or the quarantine.

    Args:
        store: the store.
        where: the URL.
        all_copied: remove everything that the home has a copy of, as an erasure does.

    Returns:
        How many objects were removed.

    Raises:
        MemstateError: as for `fetch_inbox`.
    """
    commit_now(store)  # a store at a URL has the rows before their only other copy is removed
    with _looking(store, where, None) as look:
        copies = local_copies(store.home)
        return look.remove(copies.held if all_copied else copies.committed)


class _Look:
    """What lies in the inbox at a URL.

    Args:
        home: the home that fetches.
        place: the storage of the URL.

    Attributes:
        waiting: the objects there.
        others: other names there.
    """

    def __init__(self, home: Home, place: Storage) -> None:
        self._home, self._place = home, place
        found = waiting_objects(place)
        self.waiting, self.others, self._drafts = found.objects, found.others, found.drafts

    def sweep(self, now: datetime) -> None:
        """Removes old drafts of killed replicas; none of them was acknowledged."""
        old = [name for name, at in self._drafts.items() if now - at > _STALE]
        if old:
            self._place.remove(old)

    def remove(self, digests: Collection[str]) -> int:
        """Removes the objects of some digests."""
        gone = [each for each in self.waiting if each.sha256 in digests]
        if gone:
            self._place.remove([each.name for each in gone])
            self.waiting = [each for each in self.waiting if each.sha256 not in digests]
        return len(gone)

    def copy(self, objects: Collection[WaitingObject]) -> int:
        """Copies objects into the home; an error ends it, and what was copied stays."""
        return sum(tracked(at_once(self._copy, objects), "fetch", len(objects), "objects"))

    def _copy(self, waiting: WaitingObject) -> bool:
        try:
            content = content_of(self._place, waiting)
        except Unreadable as error:
            raise InboxUnreachable(self._place.where, f"{waiting.name} {error}") from None
        if content is not None:
            keep_copy(self._home, waiting, content)
        return content is not None


@contextmanager
def _looking(store: Store, where: str, at: datetime | None) -> Iterator[_Look]:
    """Looks into the inbox of a URL, alone among the processes of the home, and notes the outcome.

    Args:
        store: the store.
        where: the URL.
        at: the machine's time, if all that is there gets a copy; None if nothing does.
    """
    lock = store.home.work("fetch").with_suffix(".lock")
    with exclusive(lock, f"process {os.getpid()} (fetching)", _WAIT_SECONDS):
        try:
            _require_own(store, where)
            look = _Look(store.home, storage(where, INBOX))
            yield look
        except (MemstateError, OSError) as error:
            problem = error.message if isinstance(error, MemstateError) else str(error)
            write_fetch_note(store.home, structs.replace(_known(store.home, where), problem=problem))
            raise
        fetched_at = at or _known(store.home, where).at
        write_fetch_note(store.home, FetchNote(where, fetched_at, len(look.waiting), look.others))


def _require_own(store: Store, where: str) -> None:
    try:
        require_own(store, where)
    except PublicationUnreachable as error:
        raise InboxUnreachable(where, str(error.facts["problem"])) from None


def _known(home: Home, where: str) -> FetchNote:
    note = read_fetch_note(home)
    return note if note is not None and note.where == where else FetchNote(where)
