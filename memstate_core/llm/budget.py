"""The budget of requests and tokens of one run. Threads share it."""

from __future__ import annotations

from threading import Lock


class Budget:
    """Limits and consumption of one run: once a limit is reached, no more requests are sent."""

    def __init__(self, max_requests: int, max_tokens: int) -> None:
        self._max_requests, self._max_tokens = max_requests, max_tokens
        self._lock = Lock()
        self.requests = 0
        self.tokens = 0

    def take(self) -> str | None:
        """Reserves one request; returns the reason if a limit is reached, else None."""
        with self._lock:
            if self.requests >= self._max_requests:
                return f"extractor.max_requests ({self._max_requests}) is used up"
            if self.tokens >= self._max_tokens:
                return f"extractor.max_tokens ({self._max_tokens}) is used up"
            self.requests += 1
            return None

    def spend(self, tokens: int) -> None:
        """Adds the tokens of an answered request."""
        with self._lock:
            self.tokens += tokens


def estimated_tokens(*texts: str) -> int:
    """An estimate of the number of tokens: four characters each, rounded up per text."""
    return sum(-(-len(text) // 4) for text in texts)
