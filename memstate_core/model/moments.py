"""One moment as text, and back; columns of moments are in `memstate_core.model.text`, which loads Polars."""

from __future__ import annotations

from datetime import UTC, datetime


def iso(moment: datetime) -> str:
    """One moment as ISO 8601, UTC, with a Z."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def parse_moment(text: str) -> datetime:
    """ISO 8601 to an aware UTC moment; no offset means UTC, a date means its midnight.

    Raises:
        ValueError: the text is not an ISO 8601 date or date-time.
        OverflowError: the moment lies outside the years 1 to 9999 once moved to UTC.
    """
    moment = datetime.fromisoformat(text)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
