"""One call's exchange with the server: retries, and the decoding of the response. Only the clients send.

Both clients run the same policy, one in `tenacity.Retrying` and one in `tenacity.AsyncRetrying`.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import httpx2
import msgspec
from tenacity import RetryCallState, retry_if_exception, stop_after_attempt

from memstate_core.client.calls import Call
from memstate_core.client.failures import failure_of
from memstate_core.model.answers import Answer
from memstate_core.model.errors import ApiError, ServerFailed

T = TypeVar("T", bound=Answer)
_TOO_MANY, _UNAVAILABLE = 429, 503
_NOT_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)


@dataclass(frozen=True)
class Retry:
    """When and how often a failed call is sent again.

    A broken connection and status 503 are retried if the call is idempotent; status 429, and a request that was not
    sent, are always retried. A call whose answer timed out is not.

    Attributes:
        attempts: how often a call is sent at most; 1 disables retries.
        first: seconds before the second attempt; the pause doubles with each further attempt.
        longest: the longest pause in seconds. If the server's Retry-After asks for more, the call fails at once.
        chance: a random number from [0, 1); each backoff is shortened by up to half, so that clients do not return
            all at once.
    """

    attempts: int = 5
    first: float = 0.25
    longest: float = 30.0
    chance: Callable[[], float] = random.random

    def pause(self, attempt: int, error: ApiError) -> float:
        """Seconds to wait after an attempt, counted from 1: the backoff, or the server's Retry-After if longer."""
        backoff = min(self.longest, self.first * 2.0 ** (attempt - 1))
        return max(error.retry_after or 0.0, backoff * (1 - self.chance() / 2))

    def may_repeat(self, call: Call[Any], error: BaseException) -> bool:
        """Whether a call that failed with this error may be sent again."""
        if not isinstance(error, ApiError) or not call.patient or (error.retry_after or 0.0) > self.longest:
            return False
        if error.status is not None:
            return error.status == _TOO_MANY or (call.repeatable and error.status == _UNAVAILABLE)
        cause = error.__cause__
        return isinstance(cause, _NOT_SENT) or (call.repeatable and not isinstance(cause, httpx2.TimeoutException))

    def policy(self, call: Call[Any]) -> dict[str, Any]:
        """The arguments of `tenacity.Retrying` for a call."""
        return {
            "stop": stop_after_attempt(self.attempts),
            "retry": retry_if_exception(lambda error: self.may_repeat(call, error)),
            "wait": self._wait,
            "reraise": True,
        }

    def _wait(self, state: RetryCallState) -> float:
        error = None if state.outcome is None else state.outcome.exception()
        return self.pause(state.attempt_number, error) if isinstance(error, ApiError) else 0.0


def decoded(response: httpx2.Response, call: Call[T], server: str) -> T:
    """The answer in a response.

    Raises:
        ApiError: the response is an error, or not an answer to this call.
    """
    if not response.is_success:
        raise failure_of(response)
    try:
        return msgspec.json.decode(response.content, type=call.answer)
    except msgspec.MsgspecError as error:
        message = f"{server} sent no valid memstate answer to {call.path} ({error}). Check the base URL."
        raise ServerFailed(message, status=response.status_code) from None
