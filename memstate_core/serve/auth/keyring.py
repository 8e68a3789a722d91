"""The valid keys of a running server: the environment's key and those of key files, reloaded when they change."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from hmac import compare_digest
from pathlib import Path

from memstate_core.model.errors import KeysDamaged
from memstate_core.serve.auth.key_file import Key, find, hashed, read
from memstate_core.serve.auth.principal import OWNER, Principal

LOOK_SECONDS = 0.5
"""How often the files are checked; a revoked key works for at most this long."""

MIN_UNGUESSABLE = 20
"""The length in characters from which a chosen key is taken to be beyond guessing."""

_log = logging.getLogger("memstate.serve")


@dataclass(frozen=True)
class Holder:
    """The holder of a valid key; `rate` is the key's own limit in requests per second, None without one."""

    principal: Principal
    bucket: str
    rate: float | None = None


class Keyring:
    """The keys that a server accepts; thread-safe.

    Once there has been a key, callers need one until the server stops, even if a file is removed or unreadable; its
    keys are then invalid.

    Args:
        path: the key file, or several; a key that is in one of them is valid.
        api_key: the environment's key, which grants everything; None without one.
        clock: a monotonic clock, in seconds.
    """

    def __init__(self, path: Path | Sequence[Path], api_key: str | None, clock: Callable[[], float]) -> None:
        self._paths, self._clock = [path] if isinstance(path, Path) else list(path), clock
        self._secret = None if api_key is None else hashed(api_key)
        self._is_short = api_key is not None and len(api_key) < MIN_UNGUESSABLE
        self._lock = threading.Lock()
        self._keys: dict[Path, list[Key]] = {}
        self._marks: dict[Path, tuple[int, ...] | None] = {}
        self._looked: float | None = None
        self._is_needed = api_key is not None

    def is_needed(self) -> bool:
        """Whether callers need a key."""
        self._follow()
        return self._is_needed

    def holder(self, token: str, now: datetime, *, guessable: bool = True) -> Holder | None:
        """The holder of a presented key; None if it is not valid.

        Args:
            token: the presented key.
            now: the current time.
            guessable: accept an environment's key of fewer than MIN_UNGUESSABLE characters, too.
        """
        self._follow()
        is_owner = compare_digest(hashed(token), self._secret or "0" * 64)
        found = [find(keys, token) for keys in list(self._keys.values())]
        key = next((key for key in found if key is not None and not key.has_expired(now)), None)
        if is_owner and self._secret is not None and (guessable or not self._is_short):
            return Holder(OWNER, "environment")
        if key is None:
            return None
        return Holder(key.principal, f"key {key.id}", key.rate)

    def _follow(self) -> None:
        """Reloads each file that has changed since the last check."""
        with self._lock:
            moment = self._clock()
            if self._looked is not None and moment - self._looked < LOOK_SECONDS:
                return
            self._looked = moment
            for path in self._paths:
                mark = _mark(path)
                if path not in self._marks or mark != self._marks[path]:
                    self._marks[path] = mark
                    self._keys[path] = self._read(path)

    def _read(self, path: Path) -> list[Key]:
        try:
            found = read(path)
        except KeysDamaged as error:
            _log.error("%s", error.message)
            self._is_needed = True
            return []
        self._is_needed = self._is_needed or found is not None
        return found or []


def _mark(path: Path) -> tuple[int, ...] | None:
    """A fingerprint that changes when the file is replaced; None without a file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
