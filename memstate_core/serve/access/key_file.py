"""Keys: made, kept in one file of the home as hashes, found again by what a caller shows.

A key is `ms_<id>_<secret>`; its secret has 256 random bits and is shown once. What is kept is the plain SHA-256
of the key. A slow, salted hash protects words that people choose, since those can be guessed; nobody guesses 256
bits, so one fast hash is as safe, and a request does not pay for a slow one. The file alone opens nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from hashlib import sha256
from hmac import compare_digest
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from memstate_core.model.errors import KeyRefused, KeysDamaged
from memstate_core.serve.access.principal import Principal, Role
from memstate_core.state.lock import exclusive
from memstate_core.state.snapshots import sync_path

SECRET_BYTES = 32
ID_BYTES = 6
RoleName = Literal["read", "write", "admin"]
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}").fullmatch
_LOCK_SECONDS = 10.0
_NO_HASH = "0" * 64
"""What an unknown id is compared with: no key has it, as far as anybody knows."""


class Key(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A key as it is kept.

    Attributes:
        id: the open part of the key.
        name: what people call it, and logs.
        hash: SHA-256 of the whole key, 64 hex digits.
        scopes: which scopes it is for; None means every scope.
        role: what it is for.
        rate: requests a second; None means the server's own limit.
        created_at: when it was made.
        expires_at: when it ends; None means never.
    """

    id: str
    name: str
    hash: str
    scopes: list[str] | None
    role: RoleName
    rate: float | None
    created_at: datetime
    expires_at: datetime | None

    @property
    def principal(self) -> Principal:
        """Who shows it."""
        return Principal(self.name, None if self.scopes is None else frozenset(self.scopes), Role[self.role.upper()])

    def has_expired(self, now: datetime) -> bool:
        """Whether it has ended by then."""
        return self.expires_at is not None and self.expires_at <= now


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    keys: list[Key]
    version: Literal[1] = 1


class Made(NamedTuple):
    """A new key: what is kept of it, and the key itself, which nothing can tell again."""

    key: Key
    token: str


def hashed(token: str) -> str:
    """SHA-256 of a key, 64 hex digits."""
    return sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


def make(
    name: str,
    *,
    scopes: Sequence[str] | None,
    role: RoleName,
    entropy: bytes,
    now: datetime,
    rate: float | None = None,
    expires_at: datetime | None = None,
) -> Made:
    """A new key; it lets nobody in before `add` has kept it.

    Args:
        name: what to call it.
        scopes: which scopes it is for; None means every scope.
        role: what it is for.
        entropy: `ID_BYTES + SECRET_BYTES` random bytes.
        now: the machine's clock.
        rate: requests a second; None means the server's own limit.
        expires_at: when it ends; None means never.

    Raises:
        KeyRefused: the name cannot be one, or the key would let nobody in.
    """
    if not _NAME(name):
        raise KeyRefused(name, "a name has 1 to 64 letters, digits or . _ @ - and begins with a letter or a digit")
    if scopes is not None and not scopes:
        raise KeyRefused(name, "it is for no scope; expected --scope TYPE:ID, once or more often, or --all-scopes")
    if expires_at is not None and expires_at <= now:
        raise KeyRefused(name, f"it would have ended at {expires_at.isoformat()}, expected a time to come")
    key_id, secret = entropy[:ID_BYTES].hex(), entropy[ID_BYTES:].hex()
    token = f"ms_{key_id}_{secret}"
    kept = None if scopes is None else sorted(set(scopes))
    return Made(Key(key_id, name, hashed(token), kept, role, rate, now, expires_at), token)


def find(keys: Sequence[Key], token: str) -> Key | None:
    """The key that somebody shows; an unknown one takes as long to refuse as a wrong secret."""
    _, _, rest = token.partition("_")
    by_id = {key.id: key for key in keys}
    key = by_id.get(rest.partition("_")[0])
    is_it = compare_digest(hashed(token), key.hash if key else _NO_HASH)
    return key if key is not None and is_it else None


def read(path: Path) -> list[Key] | None:
    """The keys that are kept, by name; None without a file.

    Raises:
        KeysDamaged: the file is not what `memstate keys` writes, or cannot be read.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=_File).keys
    except FileNotFoundError:
        return None
    except OSError as error:
        raise KeysDamaged(str(path), error.strerror or "it cannot be read") from error
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise KeysDamaged(str(path), str(error)) from error


def add(path: Path, key: Key) -> None:
    """Keeps a new key.

    Raises:
        KeyRefused: there is one of this name.
        KeysDamaged: the file cannot be read.
    """
    with _changing(path) as kept:
        if any(key.name == other.name or key.id == other.id for other in kept):
            raise KeyRefused(key.name, "there is one of this name; revoke it first or choose another name")
        kept.append(key)


def revoke(path: Path, name: str) -> Key:
    """Forgets a key, so that it lets nobody in any more; answers with what was kept.

    Raises:
        KeyRefused: there is none of this name.
        KeysDamaged: the file cannot be read.
    """
    with _changing(path) as kept:
        gone = next((key for key in kept if key.name == name), None)
        if gone is None:
            raise KeyRefused(name, "there is none of this name")
        kept.remove(gone)
    return gone


@contextmanager
def _changing(path: Path) -> Iterator[list[Key]]:
    """The keys that are kept, to be changed in place by nobody else; written unless an error is raised."""
    with exclusive(path.with_suffix(".lock"), f"memstate keys, process {os.getpid()}", _LOCK_SECONDS):
        kept = read(path) or []
        yield kept
        _write(path, kept)


def _write(path: Path, keys: list[Key]) -> None:
    """Replaces the file at once, readable by its owner only."""
    content = msgspec.json.format(msgspec.json.encode(_File(sorted(keys, key=lambda key: key.name))), indent=1)
    draft = path.with_name(f".{path.name}.{os.getpid()}.part")
    draft.unlink(missing_ok=True)
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content + b"\n")
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    sync_path(path.parent)
