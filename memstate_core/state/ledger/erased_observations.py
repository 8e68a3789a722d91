"""What the ledger must not accept again: keyed hashes of erased observations.

The key is a secret of the store, so that nobody who has only the hashes can confirm a guess.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

from msgspec import Struct
from msgspec import json as msgjson

from memstate_core.state.files import replace_file

ERASED = "erased.json"


class _Recorded(Struct, frozen=True):
    secret: str
    hashes: list[str]


class Erased:
    """The erased observations of a ledger.

    Args:
        ledger: the folder of the ledger.
    """

    def __init__(self, ledger: Path) -> None:
        self._path = ledger / ERASED
        recorded = self._read()
        self._secret = bytes.fromhex(recorded.secret)
        self._hashes = set(recorded.hashes)

    def __bool__(self) -> bool:
        return bool(self._hashes)

    def hashed(self, *parts: str) -> str:
        """The keyed hash of some parts."""
        return hmac.new(self._secret, "\x1f".join(parts).encode(), sha256).hexdigest()

    def knows(self, scope: str, observation_id: str, content_sha256: str) -> bool:
        """Whether an observation was erased, by its id within its scope or by its content."""
        return bool(self._hashes.intersection(self._of(scope, observation_id, content_sha256)))

    def can_become(self, other: Erased) -> bool:
        """Whether another record knows all that this one knows, so that it can take its place."""
        return not self._hashes or (self._secret == other._secret and self._hashes <= other._hashes)

    def add(self, observations: Iterable[tuple[str, str, str]]) -> None:
        """Records observations (scope, observation_id, content_sha256) durably; the caller holds the ledger's lock."""
        for observation in observations:
            self._hashes.update(self._of(*observation))
        replace_file(self._path, msgjson.encode(_Recorded(self._secret.hex(), sorted(self._hashes))))

    def _of(self, scope: str, observation_id: str, content_sha256: str) -> tuple[str, str]:
        return self.hashed("observation", scope, observation_id), self.hashed("content", content_sha256)

    def _read(self) -> _Recorded:
        try:
            return msgjson.decode(self._path.read_bytes(), type=_Recorded)
        except FileNotFoundError:
            return _Recorded(secrets.token_hex(32), [])
