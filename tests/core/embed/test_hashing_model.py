"""Hashed words and trigrams: unit vectors that follow from the text alone, nearer for shared words and spellings."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import HashingVectorizer

from memstate_core.embed.encoder import Encoder
from memstate_core.embed.hashing_model import HASHED_DIMENSION, HASHING_MODEL
from memstate_core.embed.vector_cache import embed
from memstate_core.model.errors import DimensionMismatch

TEXTS = ["The boat lies at the north quay.", "the boats lay at the North Quay", "Lunch was soup again.", "", "  "]


def test_vectors_have_unit_length_and_one_dimension() -> None:
    encoder = Encoder(HASHING_MODEL)
    vectors = encoder.encode(TEXTS)
    assert vectors.shape == (len(TEXTS), encoder.dimension) == (len(TEXTS), HASHED_DIMENSION)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


def test_shared_words_and_spellings_are_near() -> None:
    quay, quays, lunch, nothing, blank = Encoder(HASHING_MODEL).encode(TEXTS)
    assert quay @ quays > 0.6
    assert abs(quay @ lunch) < 0.3
    assert nothing @ blank == 1


def reference(texts: list[str]) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """The same vectors, each text hashed as a whole."""
    shared = {"n_features": HASHED_DIMENSION, "dtype": np.float32, "norm": "l2"}
    words = HashingVectorizer(token_pattern=r"(?u)\w+", **shared).transform(texts)
    trigrams = HashingVectorizer(analyzer="char_wb", ngram_range=(3, 3), **shared).transform(texts)
    vectors = (words + 0.5 * trigrams).toarray()
    vectors[~vectors.any(axis=1), 0] = 1
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)


@given(
    st.lists(
        st.text(st.sampled_from("ab SΣςß İıé\u0301日\u00a0\u2003\n\t-_.,'#1"), max_size=30), min_size=1, max_size=8
    )
)
def test_parts_that_are_hashed_once_give_the_vectors_of_whole_texts(texts: list[str]) -> None:
    assert np.array_equal(Encoder(HASHING_MODEL).encode(texts), reference(texts))


def test_vectors_are_not_kept_since_they_are_computed_faster(tmp_path: Path) -> None:
    path = tmp_path / "cache" / "embeddings.sqlite"
    found = embed(path, Encoder(HASHING_MODEL), [*TEXTS, TEXTS[0]])
    assert np.array_equal(found.vectors, Encoder(HASHING_MODEL).encode([*TEXTS, TEXTS[0]]))
    assert (found.encoded, found.cached, path.exists()) == (len(TEXTS), 0, False)
    assert embed(path, Encoder(HASHING_MODEL), []).vectors.shape == (0, HASHED_DIMENSION)
    with pytest.raises(DimensionMismatch, match=r"embedding\.dimension"):
        embed(path, Encoder(HASHING_MODEL, expected=384), TEXTS)


@pytest.mark.slow
def test_a_text_has_one_vector_alone_and_among_others_and_in_every_process() -> None:
    encoder = Encoder(HASHING_MODEL)
    assert np.array_equal(encoder.encode(TEXTS)[1:2], encoder.encode(TEXTS[1:2]))
    program = (
        "import sys; from memstate_core.embed.encoder import Encoder; import hashlib;"
        f"v = Encoder({HASHING_MODEL!r}).encode({TEXTS!r}); print(hashlib.sha256(v.tobytes()).hexdigest());"
        "assert 'torch' not in sys.modules"
    )
    runs = [
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=env).stdout
        for env in ({"PYTHONHASHSEED": "1"}, {"PYTHONHASHSEED": "2"})
    ]
    assert runs[0] == runs[1]
