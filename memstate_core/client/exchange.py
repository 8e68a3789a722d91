"""How a call is carried out, without doing it: when to send, how long to wait, what an answer means.

`exchange` is a generator that says what to do next and is told what came of it. Both clients drive the same
one; only they send and sleep.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator
from dataclasses import dataclass
from itertools import count
from typing import TypeVar

import httpx2
import msgspec

from memstate_core.client.answers import Answer
from memstate_core.client.calls import Call
from memstate_core.client.failures import failure_of, unreachable
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
class Send:
    """Send the call, and tell what came back: a response, or the error instead of one."""


@dataclass(frozen=True)
class Wait:
    """Wait, and tell nothing."""

    seconds: float


Outcome = httpx2.Response | httpx2.TransportError | None


def exchange(call: Call[T], server: str, retry: Retry) -> Generator[Send | Wait, Outcome, T]:
    """Carries out a call.

    Args:
        call: what is asked.
        server: how errors name the server.
        retry: how it is tried again.

    Yields:
        What to do next.

    Returns:
        The answer.

    Raises:
        ApiError: there is none.
    """
    for attempt in count(1):
        outcome = yield Send()
        if isinstance(outcome, httpx2.Response):
            if outcome.is_success:
                return _decoded(outcome, call, server)
            error: ApiError = failure_of(outcome)
        else:
            error = unreachable(outcome, server)
        pause = retry.pause(attempt, error) if _may_repeat(call, outcome) else None
        if pause is None:
            raise error from (outcome if isinstance(outcome, Exception) else None)
        yield Wait(pause)
    raise AssertionError("attempts are counted without end")


def _may_repeat(call: Call[T], outcome: Outcome) -> bool:
    if not call.patient:
        return False
    if isinstance(outcome, httpx2.Response):
        return outcome.status_code == _TOO_MANY or (call.repeatable and outcome.status_code == _UNAVAILABLE)
    is_late = isinstance(outcome, httpx2.TimeoutException)
    return isinstance(outcome, _NOT_SENT) or (call.repeatable and not is_late)


def _decoded(response: httpx2.Response, call: Call[T], server: str) -> T:
    try:
        return msgspec.json.decode(response.content, type=call.answer)
    except msgspec.MsgspecError as error:
        message = f"the answer of {server} to {call.path} is none of memstate's ({error}). Check the base URL."
        raise ServerFailed(message, status=response.status_code) from None
