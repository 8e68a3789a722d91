"""The lease of a shard of a store at a URL: of all machines one has the night of that shard in progress.

    head/shard-0003.json    who has the night of the fourth shard, and the number of that lease

Invariants, which together keep a paused night from publishing: the lease of a shard is taken, and taken away, by
somebody who holds the lease of the store. A night publishes while it holds the lease of the store, after it has found
that of its shard to be its own still. So between that moment and its last put nobody can have taken the shard.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable
from contextlib import suppress
from datetime import timedelta

from msgspec import MsgspecError
from msgspec import json as msgjson

from memstate_core.model.errors import StoreLocked, StoreUrlRefused
from memstate_core.storage.head import HEAD
from memstate_core.storage.held import ATTEMPTS, Held, Holding, left_of, require_free
from memstate_core.storage.purpose import STORE
from memstate_core.storage.storage import Conflict, Storage
from memstate_core.storage.transient import sweep_transient

_SHARD = re.compile(rf"{STORE.mark}/shard-(.+)\.json").fullmatch


class ShardLease(Holding[Held]):
    """The lease of a shard, which the caller takes, and releases at the end."""

    def require(self) -> None:
        """Refuses to go on without it; the caller holds the lease of the store.

        Raises:
            LeaseLost: another writer took it.
            StoreUnreachable: the storage does not answer.
        """
        with self._changing:
            self._change()

    def _read(self) -> tuple[Held, str] | None:
        return _read(self._place, self._name)


def take_shard(place: Storage, shard: str, checkout: str, holder: str, seconds: float) -> ShardLease:
    """Takes the lease of a shard; the caller holds that of the store, and the lock of the shard in its home.

    Args:
        place: the storage of the URL.
        shard: which shard.
        checkout: the id of the checkout that takes it.
        holder: who takes it, for messages.
        seconds: how long it stays after its last renewal.

    Raises:
        StoreLocked: another checkout has the night of the shard in progress.
        StoreUnreachable: the storage does not answer.
        StoreUrlRefused: what is there is no lease of this version.
    """
    content, version = _replaced(place, _name(shard), checkout, holder, seconds, brief=False)
    return ShardLease(place, _name(shard), content, version)


def require_no_nights(place: Storage, checkout: str) -> None:
    """Refuses a command that needs the whole store while nights of shards are in progress; ends those that died.

    The caller has just taken the lease of the store, and holds the lock of its home, in which no night is in progress.
    What processes left that were killed while they judged a lease, or tried the storage, is removed.

    Raises:
        StoreLocked: another checkout has a night in progress.
        StoreUnreachable: the storage does not answer.
    """
    listed = place.listed(STORE.mark)
    sweep_transient(place, listed, HEAD)
    for name in _shards(listed):
        found = _read(place, name)
        if found is not None and found[0].holder:
            _replaced(place, name, checkout, "", found[0].seconds, brief=True)


def night_holders(place: Storage) -> list[str]:
    """Who has nights of shards in progress, for messages; those that expired are left out.

    Raises:
        StoreUnreachable: the storage does not answer.
    """
    found = {name: _read(place, name) for name in _shards(place.listed(STORE.mark))}
    held = {name: each[0] for name, each in found.items() if each is not None and each[0].holder}
    return [each.holder for name, each in held.items() if left_of(place, name, each) > timedelta()]


def _replaced(
    place: Storage, name: str, checkout: str, holder: str, seconds: float, *, brief: bool
) -> tuple[Held, str]:
    """Puts another holder in the place of one that ended, or died; what is there now, and its version."""
    for _ in range(ATTEMPTS):
        found = _read(place, name)
        if found is not None:
            require_free(place, name, found[0], checkout, brief=brief)
        fence = 1 if found is None else found[0].fence + 1
        mine = Held(fence=fence, holder=holder, checkout=checkout, token=secrets.token_hex(8), seconds=seconds)
        with suppress(Conflict):
            return mine, place.replace(name, msgjson.encode(mine), None if found is None else found[1])
    raise StoreLocked(place.where, f"somebody who renews {name} all the time", brief=brief)


def _name(shard: str) -> str:
    return f"{STORE.mark}/shard-{shard}.json"


def _shards(listed: Iterable[str]) -> list[str]:
    return sorted(name for name in listed if _SHARD(name))


def _read(place: Storage, name: str) -> tuple[Held, str] | None:
    found = place.read(name)
    if found is None:
        return None
    try:
        return msgjson.decode(found[0], type=Held), found[1]
    except MsgspecError as error:
        raise StoreUrlRefused(place.where, f"{name}: {error}") from None
