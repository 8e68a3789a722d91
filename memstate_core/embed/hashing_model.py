"""An encoder without a model: words and their character trigrams, hashed into a vector.

Texts are near each other as far as they share words and spellings; meaning does not count. Feature hashing with signs
keeps expected dot products (Weinberger et al., "Feature Hashing for Large Scale Multitask Learning", ICML 2009).

Invariant: a vector follows from its text alone, on every machine.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

HASHING_MODEL = "hashing"
"""The name of this encoder in the settings."""
HASHED_DIMENSION = 512
_TRIGRAMS = 0.5
"""How much the trigrams of a text count against its words."""


class HashingModel:
    """Hashes words and trigrams; loads nothing."""

    description = "feature hashing of words and character trigrams, no model"

    def encode(self, texts: Sequence[str], batch_size: int) -> npt.NDArray[np.float32]:  # noqa: ARG002 (as other models)
        """Unit vectors, one row per text (float32); the batch size does not matter.

        All texts without a word have one vector, the first axis.
        """
        from sklearn.feature_extraction.text import HashingVectorizer

        shared = {"n_features": HASHED_DIMENSION, "dtype": np.float32, "norm": "l2"}
        words = HashingVectorizer(token_pattern=r"(?u)\w+", **shared)
        trigrams = HashingVectorizer(analyzer="char_wb", ngram_range=(3, 3), **shared)
        vectors = (words.transform(texts) + _TRIGRAMS * trigrams.transform(texts)).toarray()
        vectors[~vectors.any(axis=1), 0] = 1
        return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)
