"""Objects that a process needs for a moment at a URL, and removes; those that killed processes left are swept.

Their names are random, so nobody else removes one that is in use; the age that makes one a leftover is counted by the
clock of the storage.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta

from memstate_core.model.errors import MemstateError
from memstate_core.storage.storage import Listed, Storage

_NAME = re.compile(r"[^/]+/\.?(?:clock|probe)-[0-9a-f]{16}(?:\.lock|\.holder\.json)?").fullmatch
_LEFT_OVER = timedelta(hours=1)


def transient_name(mark: str, kind: str) -> str:
    """A name of its own for an object below the folder that marks a place.

    Args:
        mark: the folder (`Purpose.mark`).
        kind: what it is for: `clock` or `probe`.
    """
    return f"{mark}/{kind}-{secrets.token_hex(8)}"


def sweep_transient(place: Storage, listed: Mapping[str, Listed], latest: str) -> None:
    """Removes those that are an hour older than another object; a storage that does not allow it keeps them.

    Args:
        place: the storage.
        listed: what is below the folder that marks it.
        latest: an object that was written just now; nothing is removed if it is not listed.
    """
    if latest not in listed:
        return
    before = listed[latest].written_at - _LEFT_OVER
    left = {name for name, each in listed.items() if _NAME(name) and each.written_at < before}
    if left:
        with suppress(MemstateError):
            place.remove(left)
