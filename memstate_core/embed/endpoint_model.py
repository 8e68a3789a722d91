"""A sentence encoder at an OpenAI-compatible endpoint: batches, retries, a budget, and checks of what comes back.

Invariant: a vector that this module returns is finite, of unit length, of the same dimension as the others, and that of
its own text: an answer that is not is asked for again, and in the end an error.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from memstate_core.model.errors import EncoderEndpointFailed
from memstate_core.remote.backoff import Backoff
from memstate_core.remote.budget import Budget, estimated_tokens
from memstate_core.remote.connection import Connection, RequestFailed, Trouble

if TYPE_CHECKING:
    from memstate_core.policy.sections.embedding import EmbeddingSettings

Vectors = npt.NDArray[np.float32]
_ALL = "texts"
"""What the budget charges: there is one budget for all scopes."""


class EndpointModel:
    """A model at an endpoint. Threads may share it.

    Args:
        url: the URL of the API.
        model: the model's name there.
        settings: the limits.
        environ: has the key.
        sleep: waits between repetitions.

    Raises:
        EncoderEndpointFailed: the package `openai` is missing, or the variable of the key is not set.
    """

    def __init__(
        self,
        url: str,
        model: str,
        settings: EmbeddingSettings,
        environ: Mapping[str, str] = os.environ,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.description = f"the endpoint {url}"
        self._url, self._model, self._settings, self._sleep = url, model, settings, sleep
        self._budget = Budget(settings.max_requests, settings.max_tokens, "embedding")
        self._dimension: int | None = None
        self._connection = Connection(
            url, settings, "a list of embeddings", section="embedding", unavailable=self._unavailable, environ=environ
        )

    def encode(self, texts: Sequence[str], batch_size: int) -> Vectors:
        """Unit vectors, one row per text (float32).

        Args:
            texts: at least one text.
            batch_size: how many texts a request has at most.

        Raises:
            EncoderEndpointFailed: there is no sound answer, or the budget is used up.
        """
        parts = [self._patiently(texts[at : at + batch_size]) for at in range(0, len(texts), batch_size)]
        return np.concatenate(parts)

    def _patiently(self, texts: Sequence[str]) -> Vectors:
        sent = [text[: self._settings.max_chars] or " " for text in texts]  # some servers refuse an empty text
        attempts = Backoff(self._settings, lambda: datetime.now(UTC)).retrying(self._sleep)
        try:
            vectors: Vectors = attempts(lambda: self._connection.sent(lambda: self._asked(sent)))
        except RequestFailed as failed:
            raise EncoderEndpointFailed(self._model, self._url, str(failed)) from None
        self._dimension = vectors.shape[1]
        return vectors

    def _asked(self, texts: list[str]) -> Vectors:
        """Sends one request.

        Raises:
            RequestFailed: the answer has other vectors than one for each text.
            EncoderEndpointFailed: the budget is used up.
        """
        if ended := self._budget.take(_ALL):
            raise EncoderEndpointFailed(self._model, self._url, ended)
        answer = self._connection.client.embeddings.create(model=self._model, input=texts, encoding_format="float")
        reported = getattr(answer.usage, "total_tokens", None)
        self._budget.spend(_ALL, int(reported or estimated_tokens(*texts)))
        return self._checked(answer.data, len(texts))

    def _checked(self, data: Sequence[Any], count: int) -> Vectors:
        """The vectors of an answer by their numbers, at unit length."""
        if sorted(entry.index for entry in data) != list(range(count)):
            raise _wrong(f"{len(data)} vectors with other numbers than 0 to {count - 1}, one for each text")
        rows = [entry.embedding for entry in sorted(data, key=lambda entry: entry.index)]
        dimensions = sorted({len(row) for row in rows} | ({self._dimension} if self._dimension else set()))
        if len(dimensions) > 1 or not dimensions[0]:
            raise _wrong(f"vectors of {' and '.join(map(str, dimensions))} dimensions, expected one number for all")
        vectors = np.array(rows, dtype=np.float64)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not (np.isfinite(lengths) & (lengths > 0)).all():
            raise _wrong("a vector that is zero or not finite")
        return np.asarray(vectors / lengths, dtype=np.float32)

    def _unavailable(self, problem: str, remedy: str) -> EncoderEndpointFailed:
        return EncoderEndpointFailed(self._model, self._url, f"{problem}. {remedy}")


def _wrong(found: str) -> RequestFailed:
    return RequestFailed(Trouble.UNAVAILABLE, f"the answer has {found}")
