"""Who may come in: the key of the environment and the keys of the home, followed while a server runs."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from hmac import compare_digest
from pathlib import Path

from memstate_core.model.errors import KeysDamaged
from memstate_core.serve.access.key_file import Key, find, hashed, read
from memstate_core.serve.access.principal import OWNER, Principal

LOOK_SECONDS = 0.5
"""How old what is known of the file may be; a revoked key lets nobody in for longer."""

_log = logging.getLogger("memstate.serve")


@dataclass(frozen=True)
class Holder:
    """Somebody who has shown a good key; `rate` is their own limit in requests a second, None without one."""

    principal: Principal
    bucket: str
    rate: float | None = None


class Keyring:
    """The keys that a server knows; for several threads.

    Once there was a key, there is no way in without one until the server ends, even when the file goes away or
    cannot be read: then its keys let nobody in.

    Args:
        path: the file of keys.
        api_key: the key that the environment sets, which is for everything; None without one.
        clock: a clock that never goes back, in seconds.
    """

    def __init__(self, path: Path, api_key: str | None, clock: Callable[[], float]) -> None:
        self._path, self._clock = path, clock
        self._secret = None if api_key is None else hashed(api_key)
        self._lock = threading.Lock()
        self._keys: list[Key] = []
        self._mark: tuple[int, ...] | None = ()  # like no file that there is, so that the first look reads
        self._looked: float | None = None
        self._is_needed = api_key is not None

    def is_needed(self) -> bool:
        """Whether callers have to show a key."""
        self._follow()
        return self._is_needed

    def holder(self, token: str, now: datetime, *, guessable: bool = True) -> Holder | None:
        """Who shows this; None where nobody is known by it.

        Args:
            token: what was shown.
            now: the machine's clock.
            guessable: take the environment's key too, which somebody may have chosen and another one guess.
        """
        self._follow()
        is_owner = compare_digest(hashed(token), self._secret or "0" * 64)
        key = find(self._keys, token)
        if is_owner and guessable and self._secret is not None:
            return Holder(OWNER, "environment")
        if key is None or key.has_expired(now):
            return None
        return Holder(key.principal, f"key {key.id}", key.rate)

    def _follow(self) -> None:
        """Reads the file again where it has changed since the last look."""
        with self._lock:
            moment = self._clock()
            if self._looked is not None and moment - self._looked < LOOK_SECONDS:
                return
            self._looked = moment
            mark = _mark(self._path)
            if mark != self._mark:
                self._mark = mark
                self._keys = self._read()

    def _read(self) -> list[Key]:
        try:
            found = read(self._path)
        except KeysDamaged as error:
            _log.error("%s", error.message)
            self._is_needed = True
            return []
        self._is_needed = self._is_needed or found is not None
        return found or []


def _mark(path: Path) -> tuple[int, ...] | None:
    """What changes when a file is replaced; None without a file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
