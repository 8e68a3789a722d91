"""Which failed requests are repeated, how often, and after how long."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from datetime import datetime

from tenacity import RetryCallState, Retrying, retry_if_exception

from memstate_core.model.http_date import http_date
from memstate_core.remote.connection import Access, RequestFailed, Trouble


class Backoff:
    """The retry policy of one request: each kind of failure has its own number of repetitions and its own waits.

    Waits follow `Retry-After`; without it they are 1, 2, 4 … seconds. None is longer than `backoff_cap_seconds`.
    """

    def __init__(self, settings: Access, now: Callable[[], datetime]) -> None:
        self._cap, self._now = settings.backoff_cap_seconds, now
        self._allowed = {
            Trouble.RATE_LIMITED: settings.rate_limit_retries,
            Trouble.UNREACHABLE: settings.retries,
            Trouble.UNAVAILABLE: settings.retries,
        }
        self._repeated: Counter[Trouble] = Counter()

    def retrying(self, sleep: Callable[[float], None]) -> Retrying:
        """Repeats a call by this policy; in the end the last failure is raised."""
        return Retrying(
            sleep=sleep,
            retry=retry_if_exception(self._may_repeat),
            wait=lambda state: self._seconds(_failure(state)),
            before_sleep=lambda state: self._repeated.update([_failure(state).trouble]),
            reraise=True,
        )

    def _may_repeat(self, error: BaseException) -> bool:
        if not isinstance(error, RequestFailed):
            return False
        return self._repeated[error.trouble] < self._allowed.get(error.trouble, 0)

    def _seconds(self, failed: RequestFailed) -> float:
        wanted = None if failed.retry_after is None else _retry_after(failed.retry_after, self._now())
        return min(self._cap, 2.0 ** min(self._repeated[failed.trouble], 60) if wanted is None else max(0.0, wanted))


def _failure(state: RetryCallState) -> RequestFailed:
    error = None if state.outcome is None else state.outcome.exception()
    if not isinstance(error, RequestFailed):
        raise TypeError(f"only failed requests are repeated, found {error!r}")
    return error


def _retry_after(header: str, now: datetime) -> float | None:
    """Seconds until the moment that a server names, by a number (some send fractions) or an HTTP date."""
    try:
        seconds = float(header)
    except ValueError:
        moment = http_date(header)
        return None if moment is None else (moment - now).total_seconds()
    return None if math.isnan(seconds) else seconds
