"""The lock of backups in object storage, where no system notices that a holder died.

It is an object that only one process can create. It is left over, and is taken over, if it names this home on this
machine, since the caller keeps other backups of the home out, or if it was not renewed for a day. Before a backup
counts, its writer makes sure that the lock is still its own.
"""

from __future__ import annotations

import os
import platform
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct
from msgspec import json as msgjson

from memstate_core.model.errors import StoreLocked
from memstate_core.model.text import iso
from memstate_core.state.home import Home
from memstate_core.storage.storage import LOCK
from memstate_core.storage.versions import on_condition, version_of

if TYPE_CHECKING:
    from obstore import PutMode
    from obstore.store import ObjectStore

_ABANDONED = timedelta(days=1)
_RENEWED = timedelta(minutes=5)


class _Holder(Struct, frozen=True):
    holder: str
    home: str
    machine: str
    token: str


class CloudLock:
    """The lock of one storage.

    Args:
        store: the object storage.
        where: its address.
        clock: the time; the storage's own clock stamps the lock.
    """

    def __init__(
        self, store: ObjectStore, where: str, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._store, self._where, self._clock = store, where, clock
        self._mine: _Holder | None = None
        self._renewed = clock()
        self._renewing = threading.Lock()

    @contextmanager
    def held(self, home: Home, holder: str) -> Iterator[None]:
        """Holds the lock for the length of the block.

        Raises:
            StoreLocked: another home holds it.
        """
        import obstore
        from obstore.exceptions import AlreadyExistsError, BaseError

        mine = _Holder(f"{holder} of {home.root}", str(home.root), platform.node(), os.urandom(8).hex())
        try:
            self._write(mine, "create")
        except AlreadyExistsError:
            self._take_over(mine)
        try:
            yield
        finally:
            with suppress(StoreLocked, BaseError, OSError):
                self.require()
                obstore.delete(self._store, LOCK)
            self._mine = None

    def renew(self) -> None:
        """Shows that the holder lives, every few minutes; raises StoreLocked if the lock is lost."""
        with self._renewing:
            if self._mine is not None and self._clock() - self._renewed > _RENEWED:
                self.require()
                self._replace(self._mine, self._found()[1])

    def require(self) -> None:
        """Raises StoreLocked if another process took the lock over."""
        if self._mine is not None and (found := self._found()[0]) != self._mine:
            raise StoreLocked(self._where, found.holder if found else "nobody any more, since its lock was removed")

    def _take_over(self, mine: _Holder) -> None:
        found, version, at = self._found()
        own = found is not None and (found.home, found.machine) == (mine.home, mine.machine)
        if not own and at is not None and self._clock() - at < _ABANDONED:
            who = f"{found.holder} on {found.machine}" if found else "an unknown process"
            raise StoreLocked(self._where, f"{who} since {iso(at)} (if that is gone, delete {self._where}/{LOCK})")
        self._replace(mine, version)
        self.require()

    def _replace(self, mine: _Holder, version: str | None) -> None:
        """Writes the lock, if it is still the one that was read."""
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        try:
            self._write(mine, on_condition(self._store, version))
        except (PreconditionError, AlreadyExistsError, FileNotFoundError):
            raise StoreLocked(self._where, "a backup that began at the same moment") from None

    def _write(self, mine: _Holder, mode: PutMode) -> None:
        import obstore

        obstore.put(self._store, LOCK, msgjson.encode(mine), mode=mode)
        self._mine, self._renewed = mine, self._clock()

    def _found(self) -> tuple[_Holder | None, str | None, datetime | None]:
        """Who holds the lock, with its version and time; None for a holder that cannot be read."""
        import obstore

        try:
            answer = obstore.get(self._store, LOCK)
            content, meta = bytes(answer.bytes()), answer.meta
        except FileNotFoundError:
            return None, None, None
        try:
            holder = msgjson.decode(content, type=_Holder)
        except msgspec.MsgspecError:
            holder = None
        return holder, version_of(self._store, meta), meta["last_modified"]
