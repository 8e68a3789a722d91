"""The file of API keys: creates keys, stores their hashes, looks up the key that a caller presents.

A key is `ms_<id>_<secret>`; its secret has 256 random bits and is shown once. Only the SHA-256 of the key is stored. A
slow, salted hash protects guessable passwords; 256 random bits cannot be guessed, so a fast hash is as safe and costs a
request nothing. The file alone grants no access.
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
from memstate_core.serve.auth.principal import Principal, Role
from memstate_core.state.files import replace_file
from memstate_core.state.lock import exclusive

SECRET_BYTES = 32
ID_BYTES = 6
RoleName = Literal["read", "write", "admin"]
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}").fullmatch
_LOCK_SECONDS = 10.0
_NO_HASH = "0" * 64
"""The hash that an unknown id is compared with; no key is known to have it."""


class Key(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A stored key.

    Attributes:
        id: the public part of the key.
        name: its name for people and logs.
        hash: SHA-256 of the whole key, 64 hex digits.
        scopes: the scopes it grants; None for all.
        role: the role it grants.
        rate: requests per second; None for the server's limit.
        created_at: when it was created.
        expires_at: when it expires; None for never.
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
        """The caller who presents it."""
        return Principal(self.name, None if self.scopes is None else frozenset(self.scopes), Role[self.role.upper()])

    def has_expired(self, now: datetime) -> bool:
        """Whether it has expired at this time."""
        return self.expires_at is not None and self.expires_at <= now


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    keys: list[Key]
    version: Literal[1] = 1


class Made(NamedTuple):
    """A new key: its stored form, and the key itself, which cannot be recovered later."""

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
    """Creates a key; it is valid once `add` has stored it.

    Args:
        name: its name.
        scopes: the scopes it grants; None for all.
        role: the role it grants.
        entropy: `ID_BYTES + SECRET_BYTES` random bytes.
        now: the current time.
        rate: requests per second; None for the server's limit.
        expires_at: when it expires; None for never.

    Raises:
        KeyRefused: the name is invalid, or the key would grant nothing.
    """
    if not _NAME(name):
        raise KeyRefused(name, "a name has 1 to 64 letters, digits or . _ @ - and begins with a letter or a digit")
    if scopes is not None and not scopes:
        raise KeyRefused(name, "it grants no scope; expected --scope TYPE:ID, once or more, or --all-scopes")
    if expires_at is not None and expires_at <= now:
        raise KeyRefused(name, f"it would already have expired at {expires_at.isoformat()}; expected a future time")
    key_id, secret = entropy[:ID_BYTES].hex(), entropy[ID_BYTES:].hex()
    token = f"ms_{key_id}_{secret}"
    granted = None if scopes is None else sorted(set(scopes))
    return Made(Key(key_id, name, hashed(token), granted, role, rate, now, expires_at), token)


def find(keys: Sequence[Key], token: str) -> Key | None:
    """Looks up a presented key; an unknown id takes as long to refuse as a wrong secret."""
    _, _, rest = token.partition("_")
    by_id = {key.id: key for key in keys}
    key = by_id.get(rest.partition("_")[0])
    is_it = compare_digest(hashed(token), key.hash if key else _NO_HASH)
    return key if key is not None and is_it else None


def read(path: Path) -> list[Key] | None:
    """The stored keys, by name; None without a file.

    Raises:
        KeysDamaged: the file is malformed or cannot be read.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise KeysDamaged(str(path), error.strerror or "it cannot be read") from error
    return decoded(content, str(path))


def decoded(content: bytes, where: str) -> list[Key]:
    """The keys in the content of a key file.

    Raises:
        KeysDamaged: it is malformed; the message names `where` it was found.
    """
    try:
        return msgspec.json.decode(content, type=_File).keys
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise KeysDamaged(where, str(error)) from error


def encoded(keys: Sequence[Key]) -> bytes:
    """The content of a key file."""
    document = msgspec.json.encode(_File(sorted(keys, key=lambda key: key.name)))
    return msgspec.json.format(document, indent=1) + b"\n"


def add(path: Path, key: Key) -> None:
    """Stores a new key.

    Raises:
        KeyRefused: the name is taken.
        KeysDamaged: the file cannot be read.
    """
    with _changing(path) as kept:
        if any(key.name == other.name or key.id == other.id for other in kept):
            raise KeyRefused(key.name, "this name is taken; revoke the key first or choose another name")
        kept.append(key)


def revoke(path: Path, name: str) -> Key:
    """Removes a key and returns its stored form.

    Raises:
        KeyRefused: no key has this name.
        KeysDamaged: the file cannot be read.
    """
    with _changing(path) as kept:
        gone = next((key for key in kept if key.name == name), None)
        if gone is None:
            raise KeyRefused(name, "no key has this name")
        kept.remove(gone)
    return gone


@contextmanager
def _changing(path: Path) -> Iterator[list[Key]]:
    """The stored keys, to be changed in place under an exclusive lock; written unless an error is raised."""
    with exclusive(path.with_suffix(".lock"), f"memstate keys, process {os.getpid()}", _LOCK_SECONDS):
        kept = read(path) or []
        yield kept
        replace_file(path, encoded(kept))
