"""Hashed words and trigrams: unit vectors that follow from the text alone, nearer for shared words and spellings."""

from __future__ import annotations

import subprocess
import sys

import numpy as np

from memstate_core.embed.encoder import Encoder
from memstate_core.embed.hashing_model import HASHED_DIMENSION, HASHING_MODEL

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
