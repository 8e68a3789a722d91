"""How much may be asked in one run, and what was asked. Threads share one budget."""

from __future__ import annotations

from threading import Lock


class Budget:
    """Requests and tokens of one run; a request that would exceed either is not sent."""

    def __init__(self, max_requests: int, max_tokens: int) -> None:
        self._max_requests, self._max_tokens = max_requests, max_tokens
        self._lock = Lock()
        self.requests = 0
        self.tokens = 0

    def take(self) -> str | None:
        """Takes one request out of the budget; the setting that is used up if there is none left."""
        with self._lock:
            if self.requests >= self._max_requests:
                return f"extractor.max_requests ({self._max_requests}) is used up"
            if self.tokens >= self._max_tokens:
                return f"extractor.max_tokens ({self._max_tokens}) is used up"
            self.requests += 1
            return None

    def spend(self, tokens: int) -> None:
        """Adds what a request used."""
        with self._lock:
            self.tokens += tokens


def estimated_tokens(*texts: str) -> int:
    """About how many tokens texts have, at four characters each, rounded up."""
    return sum(-(-len(text) // 4) for text in texts)
