"""What a home remembers of fetching what replicas accepted for it from the inbox at its URL."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct
from msgspec import json as msgjson

from memstate_core.state.files import make_folder, replace_file
from memstate_core.state.home import Home


class FetchNote(Struct, frozen=True):
    """The last look at the inbox at a URL.

    Attributes:
        where: the URL.
        at: when the home last fetched what lay there; None if that never worked.
        waiting: how many objects lay there afterwards, whose content is not in the ledger yet.
        others: names there that no replica gives, which are left alone.
        problem: why the last attempt failed; None if it did not.
    """

    where: str
    at: datetime | None = None
    waiting: int = 0
    others: list[str] = []
    problem: str | None = None


def read_fetch_note(home: Home) -> FetchNote | None:
    """The note of a home; None if it never looked, or the note is damaged."""
    try:
        return msgjson.decode(home.last_fetch.read_bytes(), type=FetchNote)
    except (OSError, ValueError):
        return None


def write_fetch_note(home: Home, note: FetchNote) -> None:
    """Replaces the note of a home."""
    make_folder(home.root)
    replace_file(home.last_fetch, msgjson.encode(note))
