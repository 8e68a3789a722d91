"""An encoder without a model: words and their character trigrams, hashed into a vector.

Texts are near each other as far as they share words and spellings; meaning does not count. Feature hashing with signs
keeps expected dot products (Weinberger et al., "Feature Hashing for Large Scale Multitask Learning", ICML 2009).

Invariant: a vector follows from its text alone, on every machine.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

HASHING_MODEL = "hashing"
"""The name of this encoder in the settings."""
HASHED_DIMENSION = 512
_TRIGRAMS = 0.5
"""How much the trigrams of a text count against its words."""
_WORDS = re.compile(r"\w+").findall


class HashingModel:
    """Hashes words and trigrams; loads nothing."""

    description = "feature hashing of words and character trigrams, no model"

    def encode(self, texts: Sequence[str], batch_size: int) -> npt.NDArray[np.float32]:  # noqa: ARG002 (as other models)
        """Unit vectors, one row per text (float32); the batch size does not matter.

        All texts without a word have one vector, the first axis. Trigrams do not reach over white space.
        """
        from sklearn.feature_extraction.text import HashingVectorizer

        shared = {"n_features": HASHED_DIMENSION, "dtype": np.float32, "norm": None, "lowercase": False}
        words = HashingVectorizer(analyzer=lambda word: [word], **shared)
        trigrams = HashingVectorizer(analyzer="char_wb", ngram_range=(3, 3), **shared)
        lowered = [text.lower() for text in texts]
        by_words = _hashed(map(_WORDS, lowered), words.transform)
        by_trigrams = _hashed(map(str.split, lowered), trigrams.transform)
        vectors = (by_words + _TRIGRAMS * by_trigrams).toarray()
        vectors[~vectors.any(axis=1), 0] = 1
        return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)


def _hashed(parts: Iterable[list[str]], transform: Callable[[list[str]], csr_matrix]) -> csr_matrix:
    """Unit vectors (or zeros) of texts, each the sum of the vectors of its parts; a part of several is hashed once.

    Args:
        parts: those of each text.
        transform: gives the vectors of distinct parts, with whole numbers, so that sums are exact.
    """
    from scipy.sparse import csr_matrix
    from sklearn.preprocessing import normalize

    listed = [*parts]
    places: dict[str, int] = {}
    columns = [places.setdefault(part, len(places)) for part in chain.from_iterable(listed)]
    ends = np.cumsum([0, *map(len, listed)])
    counts = csr_matrix((np.ones(len(columns), np.float32), columns, ends), (len(listed), max(1, len(places))))
    return normalize(counts @ transform([*places] or [""]), copy=False)
