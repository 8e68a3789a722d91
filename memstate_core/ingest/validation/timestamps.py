"""Canonical timestamps: ISO 8601, UTC, with a Z.

Nothing here reads a clock: the latest valid time is passed in.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from memstate_core.ingest.reasons import Reason, Rejection
from memstate_core.model.moments import unsupported
from memstate_core.model.text import iso, parse_moment
from memstate_core.policy.settings import Settings

_IN_ONE_SPELLING = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z").fullmatch


@dataclass(frozen=True)
class Clock:
    """The bound between present and future.

    Attributes:
        latest: the latest valid time of something past or present.
        setting: the setting that changes it, in words.
    """

    latest: datetime
    setting: str

    @classmethod
    def at(cls, now: datetime, settings: Settings) -> Clock:
        """The clock of an import at this time: `ingest.max_future_days` later, as far as the calendar goes."""
        days = settings.ingest.max_future_days
        left = datetime.max.replace(tzinfo=UTC) - now
        return cls(now + min(timedelta(days=days), left), f"a larger ingest.max_future_days (it is {days:g})")

    def spelling(self, text: str, where: str, open_end: bool = False) -> str:
        """The canonical form of a time.

        Args:
            text: the time as it was written.
            where: its path in the record, such as `$.observed_at`.
            open_end: whether it may lie in the future.

        Raises:
            Rejection: bad_time or future_time.
        """
        try:
            moment = parse_moment(text)
        except (ValueError, OverflowError):
            expected = unsupported(text) or "an ISO 8601 time such as 2026-04-22T12:00:00Z"
            raise Rejection(Reason.BAD_TIME, f"{where} is {text!r}, expected {expected}") from None
        if moment > self.latest and not open_end:
            expected = f"no later than {iso(self.latest)}; {self.setting} would allow it"
            raise Rejection(Reason.FUTURE_TIME, f"{where} is {text!r}, expected {expected}")
        return text if _IN_ONE_SPELLING(text) else iso(moment)

    def respell(self, key: str, content: dict[str, Any], where: str, open_end: bool = False) -> str | None:
        """Replaces the time under a key of a record by its canonical form and returns it; None if there is none.

        Raises:
            Rejection: bad_time or future_time.
        """
        if key not in content:
            return None
        content[key] = spelling = self.spelling(content[key], f"{where}.{key}", open_end)
        return spelling
