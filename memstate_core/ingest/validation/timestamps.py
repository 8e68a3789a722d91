"""Times as writers spell them, in one spelling: ISO 8601, UTC, with a Z.

Nothing here reads a clock: the last moment that a record may name is passed in.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memstate_core.ingest.reasons import Reason, Rejection
from memstate_core.model.text import iso, parse_moment

_IN_ONE_SPELLING = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z").fullmatch


@dataclass(frozen=True)
class Clock:
    """What counts as the future.

    Attributes:
        latest: the last moment that a record may name as past or present.
        setting: the setting that moves it, in words.
    """

    latest: datetime
    setting: str

    def spelling(self, text: str, where: str, open_end: bool = False) -> str:
        """The one spelling of a time.

        Args:
            text: the time as it was written.
            where: its place in the record, such as `$.observed_at`.
            open_end: whether it may lie in the future.

        Raises:
            Rejection: bad_time or future_time.
        """
        try:
            moment = parse_moment(text)
        except (ValueError, OverflowError):
            expected = "an ISO 8601 time such as 2026-04-22T12:00:00Z"
            raise Rejection(Reason.BAD_TIME, f"{where} is {text!r}, expected {expected}") from None
        if moment > self.latest and not open_end:
            expected = f"no later than {iso(self.latest)}; {self.setting} would allow it"
            raise Rejection(Reason.FUTURE_TIME, f"{where} is {text!r}, expected {expected}")
        return text if _IN_ONE_SPELLING(text) else iso(moment)

    def respell(self, key: str, said: dict[str, Any], where: str, open_end: bool = False) -> str | None:
        """Puts the time under a key of a record into its one spelling, if there is one; and returns it.

        Raises:
            Rejection: bad_time or future_time.
        """
        if key not in said:
            return None
        said[key] = spelling = self.spelling(said[key], f"{where}.{key}", open_end)
        return spelling
