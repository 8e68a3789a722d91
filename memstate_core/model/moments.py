"""One moment as text, and back; columns of moments are in `memstate_core.model.text`, which loads Polars."""

from __future__ import annotations

import re
from datetime import UTC, datetime

_UNSUPPORTED = re.compile(
    r"\d{4}-?\d\d-?\d\d[T ](?:[01]\d|2[0-3]):?[0-5]\d:?60(?:[.,]\d+)?(?:Z|[+-]\d\d(?::?\d\d)?)?"
    r"|\d{4}-?\d\d-?\d\d[T ]24(?::?00){0,2}(?:[.,]0+)?(?:Z|[+-]\d\d(?::?\d\d)?)?"
)
"""Leap seconds, and the end of a day."""


def iso(moment: datetime) -> str:
    """One moment as ISO 8601, UTC, with a Z."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def unsupported(text: str) -> str | None:
    """What to write in place of a time that ISO 8601 allows and that is not supported; None for any other text."""
    if _UNSUPPORTED.fullmatch(text):
        return "seconds from 00 to 59 and hours from 00 to 23: leap seconds and 24:00 are valid but not supported"
    try:
        parse_moment(text)
    except OverflowError:
        return "a time within the years 1 to 9999 in UTC: others are valid but not supported"
    except ValueError:
        pass
    return None


def parse_moment(text: str) -> datetime:
    """ISO 8601 to an aware UTC moment; no offset means UTC, a date means its midnight.

    Raises:
        ValueError: the text is not an ISO 8601 date or date-time.
        OverflowError: the moment lies outside the years 1 to 9999 once moved to UTC.
    """
    moment = datetime.fromisoformat(text)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
