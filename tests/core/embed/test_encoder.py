"""The sentence encoder: unit vectors of the packaged model, and errors that name what cannot be loaded."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from memstate_core.embed.encoder import DIMENSION, Encoder
from memstate_core.model.errors import ModelUnavailable


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    return Encoder(batch_size=2)


@pytest.mark.slow
def test_each_text_becomes_one_unit_vector_whatever_stands_beside_it(encoder: Encoder) -> None:
    texts = ["the boat sank", "", "a ship went down", "how to bake bread", "the boat sank"]
    vectors = encoder.encode(texts)
    assert (vectors.shape, vectors.dtype) == ((5, DIMENSION), np.float32)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)
    assert np.allclose(vectors[0], vectors[4], atol=1e-5)
    assert np.allclose(encoder.encode([texts[3]])[0], vectors[3], atol=1e-5)
    cosines = vectors[[2, 3]] @ vectors[0]
    assert cosines[0] > cosines[1] + 0.3


def test_no_texts_need_no_model() -> None:
    encoder = Encoder()
    assert encoder.encode([]).shape == (0, DIMENSION)
    assert encoder.description is None


@pytest.mark.slow
def test_a_model_that_is_not_on_this_machine_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match="cannot be loaded") as refused:
        Encoder(str(tmp_path / "absent")).encode(["text"])
    assert str(tmp_path / "absent") in str(refused.value)


def test_importing_the_encoder_loads_no_model_library() -> None:
    code = (
        "import sys; import memstate_core.embed.vector_cache, memstate_core.embed.model_tokenizer;"
        "print([name for name in ('torch', 'sentence_transformers', 'tokenizers', 'filelock') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
