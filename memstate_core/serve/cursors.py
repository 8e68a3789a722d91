"""Cursors: positions as clients hand them back, opaque to them (keyset pagination).

A cursor names the last row of a page, so that a new snapshot between two pages neither repeats a row nor skips one that
was there all along.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any

import msgspec


def cursor_of(position: tuple[object, ...]) -> str:
    """The cursor of a position."""
    return urlsafe_b64encode(msgspec.json.encode(position)).decode()


def position_of(cursor: str, of: Any) -> Any:
    """The position that a cursor names.

    Args:
        cursor: as a client hands it back.
        of: the type of the position, a tuple.

    Raises:
        ValueError: it is malformed.
    """
    try:
        return msgspec.json.decode(urlsafe_b64decode(cursor.encode()), type=of)
    except (ValueError, msgspec.MsgspecError):
        raise ValueError(f"{cursor[:100]!r} is not a cursor: expected next_cursor of the previous page") from None
