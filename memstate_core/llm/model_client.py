"""Answers from the cache or else the endpoint, with retries and within the budget.

Once the endpoint is unreachable, denies access, keeps refusing for its rate limit or fails three times in a row, or
the budget is used up, no more requests are sent in the run, so that a night ends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from threading import Lock

from memstate_core.llm.answer_cache import AnswerCache, Reply, request_key
from memstate_core.llm.endpoint import Dialect, Endpoint
from memstate_core.llm.prompts import Message
from memstate_core.llm.schema import Shape
from memstate_core.policy.sections.extractor import ExtractorSettings
from memstate_core.remote.backoff import Backoff
from memstate_core.remote.budget import Budget
from memstate_core.remote.connection import RequestFailed, Trouble

_ENDS_THE_ASKING = (Trouble.RATE_LIMITED, Trouble.UNREACHABLE, Trouble.DENIED)
_FAILURES_IN_A_ROW = 3
PLANNED = "a plan is being applied, which sends no requests"


class NoAnswer(Exception):
    """There is no answer; equal causes have equal texts, so that they can be counted."""


@dataclass(frozen=True)
class Time:
    """A clock, and a way to sleep."""

    now: Callable[[], datetime]
    sleep: Callable[[float], None]


class ModelClient:
    """The language model as one run uses it. Threads may share it.

    Attributes:
        budget: requests and tokens used so far.
        cached: number of answers that came from the cache.
    """

    def __init__(
        self,
        endpoint: Endpoint | None,
        answers: AnswerCache,
        settings: ExtractorSettings,
        time: Time,
        ended: str = PLANNED,
    ) -> None:
        """Makes a client.

        Args:
            endpoint: the endpoint; without one only cached answers are returned.
            answers: the cache.
            settings: the model and the limits.
            time: clock and sleep.
            ended: without an endpoint, the reason for that.
        """
        self.budget = Budget(settings.max_requests, settings.max_tokens)
        self.cached = 0
        self._endpoint, self._answers, self._settings, self._time = endpoint, answers, settings, time
        self._ended = ended if endpoint is None else None
        self._dialect, self._dialect_works = Dialect(), False
        self._failed_in_a_row, self._lock = 0, Lock()

    def ask(self, messages: Sequence[Message], shape: Shape, scope: str) -> Reply:
        """The answer to a request.

        Args:
            messages: the prompt.
            shape: the shape of the answer.
            scope: the scope that the request is about, to which the budget charges it.

        Raises:
            NoAnswer: there is none, and repeating the request now would not help.
        """
        settings = self._settings
        key = request_key(settings.model, messages, shape, (settings.temperature, settings.max_answer_tokens))
        kept = self._answers.get(key)
        if kept is not None:
            with self._lock:
                self.cached += 1
            return kept
        reply = self._in_some_dialect(messages, shape, scope)
        self.budget.spend(scope, reply.tokens)
        self._answers.put(key, reply)
        return reply

    def pause(self, seconds: float) -> None:
        """Sleeps, so that the endpoint's rate limit can recover."""
        self._time.sleep(seconds)

    def stop(self, reason: str) -> None:
        """Sends no more requests in this run."""
        with self._lock:
            self._ended = reason

    def _in_some_dialect(self, messages: Sequence[Message], shape: Shape, scope: str) -> Reply:
        dialect: Dialect | None = self._dialect
        complaint = ""
        while dialect is not None:
            try:
                reply = self._patiently(messages, shape, dialect, scope)
            except RequestFailed as failed:
                complaint, dialect = failed.detail, None if self._dialect_works else dialect.next(failed.detail)
            else:
                self._dialect, self._dialect_works = dialect, True
                return reply
        raise NoAnswer(f"the endpoint rejected the request: {complaint}")

    def _patiently(self, messages: Sequence[Message], shape: Shape, dialect: Dialect, scope: str) -> Reply:
        """Sends a request until it is answered or may not be repeated again.

        Raises:
            RequestFailed: the server did not understand the request.
            NoAnswer: there is no answer, or no more requests may be sent.
        """
        attempts = Backoff(self._settings, self._time.now).retrying(self._time.sleep)
        try:
            reply = attempts(lambda: self._permitted(scope).complete(messages, shape, dialect))
        except RequestFailed as failed:
            if failed.trouble is Trouble.NOT_UNDERSTOOD:
                raise
            raise self._given_up(failed) from None
        self._failed_in_a_row = 0
        return reply

    def _permitted(self, scope: str) -> Endpoint:
        """Reserves one request and returns the endpoint.

        Raises:
            NoAnswer: no more requests may be sent.
        """
        with self._lock:
            if self._endpoint is None or self._ended is not None:
                raise NoAnswer(self._ended)
            self._ended = self.budget.take(scope)
            if self._ended is not None:
                raise NoAnswer(self._ended)
            return self._endpoint

    def _given_up(self, failed: RequestFailed) -> NoAnswer:
        reason = f"the endpoint is {failed.trouble}: {failed.detail}"
        with self._lock:
            self._failed_in_a_row += 1
            if failed.trouble in _ENDS_THE_ASKING or self._failed_in_a_row >= _FAILURES_IN_A_ROW:
                self._ended = self._ended or reason
        return NoAnswer(reason)
