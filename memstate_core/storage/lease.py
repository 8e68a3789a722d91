"""The lease of a store at a URL: of all machines one may write.

It is a part of the object that names the state of the store (`memstate_core.storage.head`), so that one conditional
put proves both: a change of the state succeeds if nobody changed the object since, and taking the lease changes it
(`memstate_core.storage.held`). The lock of backups (`cloud_lock`) differs: it has no number and no document to protect,
and is left for a day.
"""

from __future__ import annotations

import secrets
from contextlib import suppress
from datetime import timedelta

from msgspec import json as msgjson

from memstate_core.model.errors import StoreLocked
from memstate_core.model.scope import Layout
from memstate_core.storage.head import HEAD, Head, State, read_head
from memstate_core.storage.held import ATTEMPTS, Holding, left_of, require_free
from memstate_core.storage.storage import Conflict, Storage


class Lease(Holding[Head]):
    """The lease of a store at a URL, which the caller takes, and releases at the end.

    Args:
        place: the storage of the URL.
        head: the head that this holder wrote.
        version: its version.

    Attributes:
        abandoned: whether the holder before this one did not release it.
    """

    def __init__(self, place: Storage, head: Head, version: str, *, abandoned: bool) -> None:
        super().__init__(place, HEAD, head, version)
        self.abandoned = abandoned

    @property
    def store(self) -> str:
        """What distinguishes the store from any other."""
        return self._content.store

    @property
    def state(self) -> State | None:
        """The state of the store, which nobody else can change."""
        return self._content.state

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
            origin = self._content.origin or self._content.checkout
            self._change(state=state, shards=layout.count, layout=layout.number, origin=origin)

    def _read(self) -> tuple[Head, str] | None:
        return read_head(self._place)


def take_lease(
    place: Storage, checkout: str, holder: str, seconds: float, layout: Layout, *, brief: bool = False
) -> Lease:
    """Takes the lease of the store at a URL, under a number larger than any before.

    Args:
        place: the storage of the URL.
        checkout: the id of the checkout that takes it; its caller holds the lock of the home.
        holder: who takes it, for messages.
        seconds: how long it stays after its last renewal.
        layout: the shards, recorded with the first lease.
        brief: the caller holds it for a part of its work alone, so others may wait for it.

    Raises:
        StoreLocked: another checkout holds it.
        StoreUnreachable: the storage does not answer.
        StoreUrlRefused: what is at the URL is no store of this version.
    """
    for _ in range(ATTEMPTS):
        found = read_head(place)
        if found is not None:
            require_free(place, HEAD, found[0], checkout, brief=found[0].brief)
        before = None if found is None else found[0]
        head = Head(
            fence=1 if before is None else before.fence + 1,
            holder=holder,
            checkout=checkout,
            token=secrets.token_hex(8),
            seconds=seconds,
            changes=0,
            brief=brief,
            store=secrets.token_hex(8) if before is None else before.store,
            shards=layout.count if before is None else before.shards,
            layout=layout.number if before is None else before.layout,
            origin="" if before is None else before.origin,
            state=None if before is None else before.state,
        )
        with suppress(Conflict):
            version = place.replace(HEAD, msgjson.encode(head), None if found is None else found[1])
            return Lease(place, head, version, abandoned=before is not None and bool(before.holder))
    raise StoreLocked(place.where, "writers that take turns too fast", brief=brief)


def lease_holder(place: Storage) -> str:
    """Who holds the lease of a store, for messages; empty if nobody does, or if it has expired.

    Raises:
        StoreUnreachable: the storage does not answer.
        StoreUrlRefused: what is at the URL is no store of this version.
    """
    found = read_head(place)
    held = found is not None and found[0].holder and left_of(place, HEAD, found[0]) > timedelta()
    return found[0].holder if found is not None and held else ""
