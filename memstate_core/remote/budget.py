"""The budget of requests and tokens of one run, and what each scope has used of it. Threads share it."""

from __future__ import annotations

from collections import Counter
from threading import Lock


class Budget:
    """Limits and consumption of one run: once a limit is reached, no more requests are sent."""

    def __init__(self, max_requests: int, max_tokens: int, section: str = "extractor") -> None:
        self._section = section
        self._max_requests, self._max_tokens = max_requests, max_tokens
        self._lock = Lock()
        self._requests: Counter[str] = Counter()
        self._tokens: Counter[str] = Counter()

    @property
    def requests(self) -> int:
        """Requests that were sent, of all scopes."""
        return self._requests.total()

    @property
    def tokens(self) -> int:
        """Tokens of the answered requests, of all scopes."""
        return self._tokens.total()

    def take(self, scope: str) -> str | None:
        """Reserves one request for a scope; returns the reason if a limit is reached, else None."""
        with self._lock:
            if self.requests >= self._max_requests:
                return f"{self._section}.max_requests ({self._max_requests}) is used up"
            if self.tokens >= self._max_tokens:
                return f"{self._section}.max_tokens ({self._max_tokens}) is used up"
            self._requests[scope] += 1
            return None

    def spend(self, scope: str, tokens: int) -> None:
        """Adds the tokens of an answered request of a scope."""
        with self._lock:
            self._tokens[scope] += tokens

    def used(self, scope: str) -> float:
        """What a scope has used, in requests: its requests, or its tokens if they are the larger share of the budget.

        This is the dominant share of Ghodsi et al., "Dominant Resource Fairness" (NSDI 2011), times `max_requests`.
        """
        by_tokens = self._tokens[scope] * self._max_requests / max(1, self._max_tokens)
        return max(float(self._requests[scope]), by_tokens)


def estimated_tokens(*texts: str) -> int:
    """An estimate of the number of tokens: four characters each, rounded up per text."""
    return sum(-(-len(text) // 4) for text in texts)
