"""The encoder of questions: one call at a time on one thread, with a cache of recent vectors.

One thread, because a question is too little work to share: with two, each waits for the other, and on a busy
machine most questions took five times as long. The cache file of the runs is not used, so that no question waits
for a disk and no question is stored.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from cachetools import LRUCache

from memstate_core.embed.encoder import Encoder, Runtime, Vectors
from memstate_core.policy.sections.embedding import EmbeddingSettings

CACHED_QUESTIONS = 4096
"""How many vectors are kept, 1.5 KiB each."""


class QuestionEncoder(Encoder):
    """A thread-safe encoder."""

    def __init__(
        self,
        model: str,
        batch_size: int = 64,
        runtime: Runtime = "auto",
        *,
        cached: int = CACHED_QUESTIONS,
        access: EmbeddingSettings | None = None,
        base: Path | None = None,
    ) -> None:
        super().__init__(model, batch_size, runtime, threads=1, access=access, base=base)
        self._encoding = threading.Lock()  # tokenizers keep state and are not safe to share
        self._cache: LRUCache[str, Vectors] = LRUCache(cached)
        self._caching = threading.Lock()

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors of texts that have their prefixes, one row a text (float32, len(texts) x d).

        Raises:
            ModelUnavailable: as for any encoder.
        """
        with self._caching:
            known = {text: vector for text in texts if (vector := self._cache.get(text)) is not None}
        missing = [text for text in dict.fromkeys(texts) if text not in known]
        if missing:
            with self._encoding:
                fresh = dict(zip(missing, super().encode(missing), strict=True))
            with self._caching:
                self._cache.update(fresh)
            known |= fresh
        return np.stack([known[text] for text in texts]) if texts else super().encode([])
