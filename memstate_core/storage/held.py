"""Something at a URL that one process holds at a time: an object that its holder replaces by conditional puts alone.

Each change proves that nobody changed the object since, and taking it changes it. A holder that was paused, and wakes
up after another one took it, is refused by the storage, whatever its clock says.

It may be taken when it was released, when it was held by the same checkout, whose processes the locks of its home keep
apart, or when its object did not change for its duration, by the clock of the storage: its time is compared with that
of an object written just now. So no clock of a machine matters.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from datetime import timedelta
from typing import Generic, TypeVar

from msgspec import Struct, structs
from msgspec import json as msgjson

from memstate_core.model.errors import LeaseLost, MemstateError, StoreLocked, StoreUnreachable
from memstate_core.storage.purpose import STORE
from memstate_core.storage.storage import Conflict, Storage
from memstate_core.storage.transient import sweep_transient, transient_name

_RENEWALS = 3
"""How often a holder renews it in its duration."""
_CLOCK_STEP = timedelta(seconds=1)
"""The resolution of the times that storages give."""
ATTEMPTS = 5
"""How often a change is tried whose object changes between reading and writing."""


class Held(Struct, frozen=True, kw_only=True):
    """The content of such an object.

    Attributes:
        fence: its number; it grows by one whenever it is taken.
        holder: who holds it, for messages; empty if nobody does.
        checkout: the checkout that holds it.
        token: what distinguishes this holder from any other.
        seconds: how long after the last change of the object another checkout may take it.
        changes: how often the holder changed the object.
    """

    fence: int
    holder: str
    checkout: str
    token: str
    seconds: float
    changes: int = 0


H = TypeVar("H", bound=Held)


class Holding(Generic[H]):
    """An object that this process holds, and renews until it is released.

    Args:
        place: the storage of the URL.
        name: the name of the object.
        content: what this holder wrote.
        version: its version.
    """

    def __init__(self, place: Storage, name: str, content: H, version: str) -> None:
        self._place, self._name, self._content, self._version = place, name, content, version
        self._lost: LeaseLost | None = None
        self._changing, self._ended = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._renew, name=f"memstate-{name}", daemon=True)
        self._thread.start()

    @property
    def fence(self) -> int:
        """Its number, larger than that of all holders before."""
        return self._content.fence

    def release(self) -> None:
        """Lets it go, so that another one need not wait; what is lost, or cannot be reached, expires."""
        self.abandon()
        with self._changing, suppress(LeaseLost, StoreUnreachable):
            self._change(holder="")

    def abandon(self) -> None:
        """Stops renewing it, as a death would; it expires."""
        self._ended.set()
        self._thread.join()

    def _renew(self) -> None:
        while not self._ended.wait(self._content.seconds / _RENEWALS):
            with self._changing, suppress(LeaseLost, StoreUnreachable):  # the next change says so
                self._change()

    def _change(self, **changed: object) -> None:
        """Replaces the object by one with changes; what is refused once stays refused."""
        if self._lost is not None:
            raise self._lost
        for _ in range(ATTEMPTS):
            content = structs.replace(self._content, changes=self._content.changes + 1, **changed)
            try:
                self._version = self._place.replace(self._name, msgjson.encode(content), self._version)
            except Conflict:
                self._read_own()
            else:
                self._content = content
                return
        raise StoreUnreachable(self._place.where, f"{self._name} changes between reading and writing")

    def _read(self) -> tuple[H, str] | None:
        """The object that is there now, with its version."""
        raise NotImplementedError

    def _read_own(self) -> None:
        """Takes up the object that is there, if this holder wrote it by a put whose answer was lost."""
        found = self._read()
        if found is None or found[0].token != self._content.token:
            taken, holder = (0, "nobody, since it is gone") if found is None else (found[0].fence, found[0].holder)
            self._lost = LeaseLost(self._place.where, self._content.fence, taken, holder)
            raise self._lost
        self._content, self._version = found


def require_free(place: Storage, name: str, held: Held, checkout: str, *, brief: bool) -> None:
    """Refuses an object that another checkout holds, and that changed within its duration.

    Args:
        place: the storage of the URL.
        name: the name of the object.
        held: its content.
        checkout: the id of the checkout that wants it.
        brief: whether the holder has it for a part of its work alone, for those that may wait.

    Raises:
        StoreLocked: it is held.
        StoreUnreachable: the storage does not answer, or does not list it.
    """
    if not held.holder or held.checkout == checkout:
        return
    left = left_of(place, name, held)
    if left > timedelta():
        who = f"{held.holder}, whose lease number {held.fence} expires in {left.total_seconds():.0f} s unless renewed"
        raise StoreLocked(place.where, who, brief=brief)


def left_of(place: Storage, name: str, held: Held) -> timedelta:
    """The time after which an object that is not renewed may be taken; not positive if it may."""
    return timedelta(seconds=held.seconds) + _CLOCK_STEP - unchanged_for(place, name)


def unchanged_for(place: Storage, name: str) -> timedelta:
    """For how long an object has not changed, by the clock of the storage.

    Raises:
        StoreUnreachable: the storage does not answer, or has no such object.
    """
    probe = transient_name(STORE.mark, "clock")
    place.create(probe, b"")
    try:
        listed = place.listed(STORE.mark)
        sweep_transient(place, listed, probe)
        return listed[probe].written_at - listed[name].written_at
    except KeyError as error:
        raise StoreUnreachable(place.where, f"it does not list {error}") from None
    finally:
        with suppress(MemstateError):
            place.remove([probe])
