"""Dates in HTTP headers (RFC 9110, 5.6.7)."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime


def http_date(header: str) -> datetime | None:
    """The moment that a header names; None if it is not a date. Without a zone it is UTC."""
    try:
        found = parsedate_to_datetime(header)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
