"""What replicas accepted for a store, as objects at its URL until the store has it in its ledger.

    inbox/SHA256.jsonl      the observations of one request, one a line
    accesses/SHA256.jsonl   a segment of the access journal

Invariant: an object is named after the digest of its bytes and put on condition that there is none of this name. So a
request that is sent again, to whichever replica, is stored once, and no two replicas need to know of each other.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from datetime import datetime

from memstate_core.storage.storage import Conflict, Listed, Storage, Unreadable

INBOX, ACCESSES = "inbox", "accesses"
_NAME = re.compile(rf"(?:{INBOX}|{ACCESSES})/([0-9a-f]{{64}})\.jsonl").fullmatch
_DRAFT = re.compile(r".*/\.[^/]*").fullmatch


@dataclass(frozen=True)
class WaitingObject:
    """An object in the inbox at a URL.

    Attributes:
        name: its name there.
        sha256: the digest that its bytes should have.
        size: the number of its bytes.
        written_at: when it was stored, by the clock of the storage, which is one for all replicas.
    """

    name: str
    sha256: str
    size: int
    written_at: datetime


def put_once(place: Storage, folder: str, content: bytes) -> str:
    """Stores a content, unless it is there already; it is durable when this returns.

    Args:
        place: the storage of the URL.
        folder: `INBOX` or `ACCESSES`.
        content: the content.

    Returns:
        The name of its object.

    Raises:
        InboxUnreachable: the storage does not answer, or refuses.
    """
    name = f"{folder}/{hashlib.sha256(content).hexdigest()}.jsonl"
    if not place.create(name, content):
        _mend(place, name, content)
    return name


def _mend(place: Storage, name: str, content: bytes) -> None:
    """Replaces an object that has other bytes than its name says; if it is gone meanwhile, the store has it."""
    found = place.read(name)
    if found is not None and found[0] != content:
        try:
            place.replace(name, content, found[1])
        except Conflict:  # another replica mended it, or the store took it
            _mend(place, name, content)


@dataclass(frozen=True)
class RemoteContents:
    """What lies in the inbox at a URL.

    Attributes:
        objects: the objects, the oldest first.
        drafts: the names of drafts, which only folders have, with the times of their last change.
        others: the names of what no replica put there.
    """

    objects: list[WaitingObject]
    drafts: dict[str, datetime]
    others: list[str]


def waiting_objects(place: Storage) -> RemoteContents:
    """Lists the inbox at a URL; raises InboxUnreachable."""
    listed: dict[str, Listed] = {**place.listed(INBOX), **place.listed(ACCESSES)}
    found = [
        WaitingObject(name, match[1], each.size, each.written_at)
        for name, each in listed.items()
        if (match := _NAME(name)) is not None
    ]
    drafts = {name: each.written_at for name, each in listed.items() if _DRAFT(name) is not None}
    others = listed.keys() - drafts.keys() - {each.name for each in found}
    return RemoteContents(sorted(found, key=lambda each: (each.written_at, each.name)), drafts, sorted(others))


def content_of(place: Storage, waiting: WaitingObject) -> bytes | None:
    """The bytes of an object; None if it is gone.

    Raises:
        Unreadable: other bytes arrived than are there.
        InboxUnreachable: the storage does not answer.
    """
    found = place.read(waiting.name)
    if found is None:
        return None
    content = found[0]
    if len(content) != waiting.size and hashlib.sha256(content).hexdigest() != waiting.sha256:
        raise Unreadable(f"has {waiting.size:,} bytes, of which {len(content):,} arrived")
    return content
