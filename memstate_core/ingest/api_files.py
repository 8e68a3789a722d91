"""The files that a server writes into the inbox: always observations, by their name and by a signed header.

Their rows were validated and acknowledged one by one, so the format of such a file is never guessed from its content:
a row may look like a chat export. The name is enough; the header, an HMAC-SHA256 of the rows under a secret of the
home, says the same of a file that was renamed. Nothing else depends on the secret: a home without it reads by name.
The header has the plain SHA-256 of the rows too, so that a changed file is noticed with any secret or none.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path

import msgspec

PREFIX = "api-"
_NAME = re.compile(r"api-(\d{20})-\w+(\.\d+)?\.jsonl").fullmatch
_KEY_BYTES = 32
_HEADER_BYTES = 256
_EPOCH, _MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)


class _Header(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    memstate_api: int
    signature: str
    sha256: str | None = None


def file_name(nanoseconds: int, token: str) -> str:
    """The name of a file written at this time; names sort by time."""
    return f"{PREFIX}{nanoseconds:020d}-{token}.jsonl"


def written_at(name: str) -> int | None:
    """When a file of this name was written, in nanoseconds; None if no server gives such names."""
    found = _NAME(name)
    return None if found is None else int(found[1])


def accepted_at(name: str, lines: Sequence[int], latest: datetime) -> list[datetime]:
    """When a server accepted rows of a file, each line a microsecond after the one before it.

    So a value that was sent after another one is the later one, also where neither says when it was observed.

    Args:
        name: the name of the file.
        lines: the lines of the rows.
        latest: the time of rows that were accepted after it, and of all rows if no server gives such names.
    """
    written, last = written_at(name), (latest - _EPOCH) // _MICROSECOND
    if written is None:
        return [latest] * len(lines)
    return [_EPOCH + min(written // 1000 + line, last) * _MICROSECOND for line in lines]


def signed(rows: bytes, key: bytes, sha256: str | None = None) -> bytes:
    """The content of a file: its header, then the rows.

    Args:
        rows: the rows.
        key: the key that signs them.
        sha256: the digest that they had when a server accepted them; by default they have it still.
    """
    header = _Header(1, hmac.digest(key, rows, "sha256").hex(), sha256 or hashlib.sha256(rows).hexdigest())
    return msgspec.json.encode(header) + b"\n" + rows


def is_header(line: bytes) -> bool:
    """Whether the first line of a file is a header."""
    return _header(line) is not None


def is_signed(blocks: Iterable[bytes], key: bytes | None) -> bool:
    """Whether a file begins with a header that this key signed over all that follows."""
    header, rows = _split(blocks)
    if header is None or key is None:
        return False
    running = hmac.new(key, digestmod=hashlib.sha256)
    for piece in rows:
        running.update(piece)
    return hmac.compare_digest(header.signature, running.hexdigest())


def damage(name: str, blocks: Iterable[bytes]) -> str | None:
    """What happened to a file since a server wrote it; None if nothing did, or if no server wrote it.

    Args:
        name: its name.
        blocks: its content.
    """
    header, rows = _split(blocks)
    if header is None:
        is_empty = not any(rows)
        return "it is empty, expected the rows that a server acknowledged" if is_empty and written_at(name) else None
    if header.sha256 is None:  # of a version that wrote no digest
        return None
    running = hashlib.sha256()
    for piece in rows:
        running.update(piece)
    found = running.hexdigest()
    if found == header.sha256:
        return None
    return f"its rows have SHA-256 {found}, a server wrote {header.sha256}: the file was changed or cut since then"


def _split(blocks: Iterable[bytes]) -> tuple[_Header | None, Iterator[bytes]]:
    """The header of a file and what follows it; without a header, the whole content."""
    pieces = iter(blocks)
    head = b""
    while b"\n" not in head and len(head) <= _HEADER_BYTES and (piece := next(pieces, b"")):
        head += piece
    line, _, rest = head.partition(b"\n")
    header = _header(line)
    return header, chain([head if header is None else rest], pieces)


def _header(line: bytes) -> _Header | None:
    if len(line) > _HEADER_BYTES:
        return None
    try:
        return msgspec.json.decode(line, type=_Header)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def read_key(path: Path) -> bytes | None:
    """The signing key of a home; None if it has none yet."""
    try:
        return path.read_bytes()
    except OSError:
        return None


def make_key(path: Path) -> bytes:
    """The signing key of a home, created at the first call, readable by its owner only.

    Of processes that create it at once, one wins and all get its key.
    """
    found = read_key(path)
    if found is not None:
        return found
    draft = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.part")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(secrets.token_bytes(_KEY_BYTES))
            file.flush()
            os.fsync(file.fileno())
        try:
            path.hardlink_to(draft)
        except FileExistsError:
            pass
        except OSError:  # a file system without hard links
            draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    return path.read_bytes()
