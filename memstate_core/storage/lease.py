"""The lease of a store at a URL: of all machines one may write.

It is a part of the object that names the state of the store (`memstate_core.storage.head`), so that one conditional
put proves both: a change of the state succeeds if nobody changed the object since, and taking the lease changes it. A
writer that was paused, and wakes up after another one took the lease, is refused by the storage, whatever its clock
says.

A lease may be taken when it was released, when it was taken by the same checkout, whose processes the lock of its home
keeps apart, or when its object did not change for its duration, by the clock of the storage: its time is compared with
that of an object written just now. So no clock of a machine matters. The lock of backups (`cloud_lock`) differs: it
has no number and no document to protect, and is left for a day.
"""

from __future__ import annotations

import secrets
import threading
from contextlib import suppress
from datetime import timedelta

from msgspec import json as msgjson
from msgspec import structs

from memstate_core.model.errors import LeaseLost, MemstateError, StoreLocked, StoreUnreachable
from memstate_core.model.scope import Layout
from memstate_core.storage.head import HEAD, Head, State, read_head
from memstate_core.storage.purpose import STORE
from memstate_core.storage.storage import Conflict, Storage

_RENEWALS = 3
"""How often a lease is renewed in its duration."""
_CLOCK_STEP = timedelta(seconds=1)
"""The resolution of the times that storages give."""
_ATTEMPTS = 5


class Lease:
    """The lease of a store at a URL, which the caller takes, and releases at the end.

    Args:
        place: the storage of the URL.
        head: the head that this holder wrote.
        version: its version.

    Attributes:
        abandoned: whether the holder before this one did not release it.
    """

    def __init__(self, place: Storage, head: Head, version: str, *, abandoned: bool) -> None:
        self._place, self._head, self._version = place, head, version
        self.abandoned = abandoned
        self._lost: LeaseLost | None = None
        self._changing, self._ended = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._renew, name="memstate-lease", daemon=True)
        self._thread.start()

    @property
    def fence(self) -> int:
        """Its number, larger than that of all leases before."""
        return self._head.fence

    @property
    def store(self) -> str:
        """What distinguishes the store from any other."""
        return self._head.store

    @property
    def state(self) -> State | None:
        """The state of the store, which nobody else can change."""
        return self._head.state

    def commit(self, state: State, layout: Layout) -> None:
        """Makes a state, whose list and contents were sent, the state of the store.

        Args:
            state: the state.
            layout: the shards that the store has in it.

        Raises:
            LeaseLost: another writer took the lease; the store has the state that this one gave it.
            StoreUnreachable: the storage does not answer; the state was changed, or not.
        """
        with self._changing:
            origin = self._head.origin or self._head.checkout
            self._change(state=state, shards=layout.count, layout=layout.number, origin=origin)

    def release(self) -> None:
        """Ends the lease, so that another writer need not wait; a lease that is lost, or cannot be reached, expires."""
        self._ended.set()
        self._thread.join()
        with self._changing, suppress(LeaseLost, StoreUnreachable):
            self._change(holder="")

    def abandon(self) -> None:
        """Stops renewing it, as a death would; it expires."""
        self._ended.set()
        self._thread.join()

    def _renew(self) -> None:
        while not self._ended.wait(self._head.seconds / _RENEWALS):
            with self._changing, suppress(LeaseLost, StoreUnreachable):  # a commit says so
                self._change()

    def _change(self, **changed: object) -> None:
        """Replaces the head by one with changes; what is refused once stays refused."""
        if self._lost is not None:
            raise self._lost
        for _ in range(_ATTEMPTS):
            head = structs.replace(self._head, changes=self._head.changes + 1, **changed)
            try:
                self._version = self._place.replace(HEAD, msgjson.encode(head), self._version)
            except Conflict:
                self._read_own()
            else:
                self._head = head
                return
        raise StoreUnreachable(self._place.where, f"{HEAD} changes between reading and writing")

    def _read_own(self) -> None:
        """Takes up the head that is there, if this holder wrote it by a put whose answer was lost."""
        found = read_head(self._place)
        if found is None or found[0].token != self._head.token:
            taken, holder = (0, "nobody, since it is gone") if found is None else (found[0].fence, found[0].holder)
            self._lost = LeaseLost(self._place.where, self._head.fence, taken, holder)
            raise self._lost
        self._head, self._version = found


def take_lease(place: Storage, checkout: str, holder: str, seconds: float, layout: Layout) -> Lease:
    """Takes the lease of the store at a URL, under a number larger than any before.

    Args:
        place: the storage of the URL.
        checkout: the id of the checkout that takes it; its caller holds the lock of the home.
        holder: who takes it, for messages.
        seconds: how long it stays after its last renewal.
        layout: the shards, recorded with the first lease.

    Raises:
        StoreLocked: another checkout holds it.
        StoreUnreachable: the storage does not answer.
        StoreUrlRefused: what is at the URL is no store of this version.
    """
    for _ in range(_ATTEMPTS):
        found = read_head(place)
        if found is not None:
            _require_free(place, found[0], checkout)
        before = None if found is None else found[0]
        head = Head(
            fence=1 if before is None else before.fence + 1,
            holder=holder,
            checkout=checkout,
            token=secrets.token_hex(8),
            seconds=seconds,
            changes=0,
            store=secrets.token_hex(8) if before is None else before.store,
            shards=layout.count if before is None else before.shards,
            layout=layout.number if before is None else before.layout,
            origin="" if before is None else before.origin,
            state=None if before is None else before.state,
        )
        with suppress(Conflict):
            version = place.replace(HEAD, msgjson.encode(head), None if found is None else found[1])
            return Lease(place, head, version, abandoned=before is not None and bool(before.holder))
    raise StoreLocked(place.where, "writers that take turns too fast")


def _require_free(place: Storage, head: Head, checkout: str) -> None:
    """Refuses a lease that is held, and whose object changed within its duration by the clock of the storage."""
    if not head.holder or head.checkout == checkout:
        return
    left = _left(place, head)
    if left > timedelta():
        who = f"{head.holder}, whose lease number {head.fence} expires in {left.total_seconds():.0f} s unless renewed"
        raise StoreLocked(place.where, who)


def lease_holder(place: Storage) -> str:
    """Who holds the lease of a store, for messages; empty if nobody does, or if it has expired.

    Raises:
        StoreUnreachable: the storage does not answer.
        StoreUrlRefused: what is at the URL is no store of this version.
    """
    found = read_head(place)
    held = found is not None and found[0].holder and _left(place, found[0]) > timedelta()
    return found[0].holder if found is not None and held else ""


def _left(place: Storage, head: Head) -> timedelta:
    """The time after which a lease that is not renewed expires; not positive if it has."""
    return timedelta(seconds=head.seconds) + _CLOCK_STEP - unchanged_for(place)


def unchanged_for(place: Storage) -> timedelta:
    """For how long the head has not changed, by the clock of the storage.

    Raises:
        StoreUnreachable: the storage does not answer, or has no head.
    """
    probe = f"{STORE.mark}/clock-{secrets.token_hex(8)}"
    place.create(probe, b"")
    try:
        listed = place.listed(STORE.mark)
        return listed[probe].written_at - listed[HEAD].written_at
    except KeyError as error:
        raise StoreUnreachable(place.where, f"it does not list {error}") from None
    finally:
        with suppress(MemstateError):
            place.remove([probe])
