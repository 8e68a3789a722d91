"""The encoder of questions: one at a time, on one thread of the machine, and the last answers remembered.

One thread, since a question is too little work to share: with two, each waits for the other, and on a busy
machine most questions took five times as long. The cache file of the runs is left alone, so that no
question waits for a disk and none is written down.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence

import numpy as np

from memstate_core.embed.encoder import Encoder, Vectors

REMEMBERED = 4096
"""Questions whose vectors are kept, 1.5 KiB each."""


class QuestionEncoder(Encoder):
    """An encoder that several threads may use."""

    def __init__(self, model: str, batch_size: int = 64, *, remembered: int = REMEMBERED) -> None:
        super().__init__(model, batch_size)
        self._encoding = threading.Lock()  # tokenizers keep state and are not safe to share
        self._kept: OrderedDict[str, Vectors] = OrderedDict()
        self._keeping = threading.Lock()
        self._remembered = remembered

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors, one row a text (float32, len(texts) x 384); errors as for any encoder."""
        rows = [self._vector(text) for text in texts]
        return np.stack(rows) if rows else super().encode([])

    def _vector(self, text: str) -> Vectors:
        with self._keeping:
            if text in self._kept:
                self._kept.move_to_end(text)
                return self._kept[text]
        with self._encoding:
            _use_one_thread()
            vector: Vectors = super().encode([text])[0]
        with self._keeping:
            self._kept[text] = vector
            while len(self._kept) > self._remembered:
                self._kept.popitem(last=False)
        return vector


def _use_one_thread() -> None:
    import torch

    if torch.get_num_threads() != 1:
        torch.set_num_threads(1)
