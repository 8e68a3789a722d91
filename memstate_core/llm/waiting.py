"""How long to wait before a request is repeated."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime


def wait_seconds(tried: int, retry_after: str | None, cap: float, now: datetime) -> float:
    """Seconds until the next attempt.

    Args:
        tried: how often the request was repeated already.
        retry_after: the header of that name, seconds or an HTTP date (RFC 9110, 10.2.3); it wins where it can be read.
        cap: the longest wait.
        now: the moment at which the answer came.

    Returns:
        1, 2, 4 … seconds without the header; never more than the cap.
    """
    named = None if retry_after is None else _named(retry_after.strip(), now)
    return min(cap, 2.0 ** min(tried, 60) if named is None else max(0.0, named))


def _named(text: str, now: datetime) -> float | None:
    try:
        seconds = float(text)
    except ValueError:
        pass
    else:
        return seconds if seconds == seconds else None
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (moment - now).total_seconds()
