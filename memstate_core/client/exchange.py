"""How a call is carried out, without doing it: when to send, how long to wait, what an answer means.

An `Exchange` is told what came of each attempt and says what follows. Both clients drive the same one; only they
send and sleep.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import httpx2
import msgspec

from memstate_core.client.calls import Call
from memstate_core.client.failures import failure_of, unreachable
from memstate_core.model.answers import Answer
from memstate_core.model.errors import ApiError, ServerFailed

T = TypeVar("T", bound=Answer)
_TOO_MANY, _UNAVAILABLE = 429, 503
_NOT_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)


@dataclass(frozen=True)
class Retry:
    """How a call that failed is tried again.

    It is where the connection breaks and where the server says 503, if sending twice does no harm; and where it says
    429 or nothing was sent, in any case. A call that was answered too late is not sent again.

    Attributes:
        attempts: how often a call is sent at most; 1 never tries again.
        first: seconds before the second attempt; they double from one to the next.
        longest: seconds that a pause may have. A server that asks for a longer one has failed.
        chance: a number from [0, 1); pauses are cut by up to half of themselves, so that clients do not come back
            all at once.
    """

    attempts: int = 5
    first: float = 0.25
    longest: float = 30.0
    chance: Callable[[], float] = random.random

    def pause(self, attempt: int, error: ApiError) -> float | None:
        """Seconds to wait after an attempt, counted from 1; None where it was the last."""
        wanted = error.retry_after or 0.0
        if attempt >= self.attempts or wanted > self.longest:
            return None
        backoff = min(self.longest, self.first * 2.0 ** (attempt - 1))
        return max(wanted, backoff * (1 - self.chance() / 2))


@dataclass(frozen=True)
class Wait:
    """Wait, then send the call again."""

    seconds: float


Outcome = httpx2.Response | httpx2.TransportError
"""What comes of sending: a response, or the error instead of one."""


class Exchange(Generic[T]):
    """A call while it is carried out."""

    def __init__(self, call: Call[T], server: str, retry: Retry) -> None:
        """Begins it; nothing is sent yet.

        Args:
            call: what is asked.
            server: how errors name the server.
            retry: how it is tried again.
        """
        self._call, self._server, self._retry = call, server, retry
        self._attempts = 0

    def after(self, outcome: Outcome) -> T | Wait:
        """What follows an attempt: the answer, or a pause before the next one.

        Raises:
            ApiError: there is no answer, and there will be none.
        """
        self._attempts += 1
        if isinstance(outcome, httpx2.Response) and outcome.is_success:
            return self._decoded(outcome)
        error = failure_of(outcome) if isinstance(outcome, httpx2.Response) else unreachable(outcome, self._server)
        pause = self._retry.pause(self._attempts, error) if self._may_repeat(outcome) else None
        if pause is None:
            raise error from (outcome if isinstance(outcome, Exception) else None)
        return Wait(pause)

    def _may_repeat(self, outcome: Outcome) -> bool:
        if not self._call.patient:
            return False
        repeatable = self._call.repeatable
        if isinstance(outcome, httpx2.Response):
            return outcome.status_code == _TOO_MANY or (repeatable and outcome.status_code == _UNAVAILABLE)
        is_late = isinstance(outcome, httpx2.TimeoutException)
        return isinstance(outcome, _NOT_SENT) or (repeatable and not is_late)

    def _decoded(self, response: httpx2.Response) -> T:
        try:
            return msgspec.json.decode(response.content, type=self._call.answer)
        except msgspec.MsgspecError as error:
            where = f"{self._server} to {self._call.path}"
            message = f"the answer of {where} is none of memstate's ({error}). Check the base URL."
            raise ServerFailed(message, status=response.status_code) from None
