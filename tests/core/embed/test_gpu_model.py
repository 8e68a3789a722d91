"""The model on a GPU: the vectors of sentence-transformers, the same bits in any batch, chosen for many texts only.

Where no GPU is, the processor computes the same batches in the same precision.
"""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest
import torch

from memstate_core.embed import encoder as encoders
from memstate_core.embed.encoder import KEPT_FROM_GPU, KEPT_TOGETHER, MANY, Encoder, Vectors
from memstate_core.embed.gpu_model import BATCH_TOKENS, FLOAT16, GpuFailed, GpuModel, has_driver
from memstate_core.embed.model_files import NotSupported
from memstate_core.embed.sentence_model import PACKAGED_MODEL, SentenceModel
from memstate_core.embed.vector_cache import embed
from memstate_core.embed.verified import BOUNDS
from tests.core.embed.test_openvino_model import drawn

pytestmark = pytest.mark.slow
HAS_GPU = torch.cuda.is_available()
TEXTS = drawn(30)


@pytest.fixture(
    scope="module", params=["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not HAS_GPU, reason="no GPU"))]
)
def model(request: pytest.FixtureRequest) -> GpuModel:
    return GpuModel(PACKAGED_MODEL, request.param, 256 if request.param == "cpu" else BATCH_TOKENS)


@pytest.fixture(scope="module")
def reference() -> Vectors:
    return SentenceModel(PACKAGED_MODEL).encode(TEXTS, 32)


def test_vectors_are_those_of_sentence_transformers(model: GpuModel, reference: Vectors) -> None:
    vectors = model.encode(TEXTS, 64)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-6)
    assert (vectors * reference).sum(axis=1).min() >= BOUNDS[FLOAT16]


def test_a_vector_has_the_same_bits_alone_in_any_batch_and_in_any_order(model: GpuModel) -> None:
    together = model.encode(TEXTS, 64)
    assert np.array_equal(np.concatenate([model.encode([text], 1) for text in TEXTS[5:15]]), together[5:15])
    order = np.random.default_rng(7).permutation(len(TEXTS))
    assert np.array_equal(model.encode([TEXTS[row] for row in order], 7), together[order])


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch, model: GpuModel) -> GpuModel:
    """The model, which an encoder takes for that of a GPU."""
    monkeypatch.setattr(encoders, "has_driver", lambda: True)
    monkeypatch.setattr(encoders, "verified_on_gpu", lambda name: model if name == PACKAGED_MODEL else None)
    return model


def test_many_texts_are_encoded_on_the_gpu_and_few_are_not(gpu: GpuModel) -> None:
    encoder = Encoder()
    encoder.expect(MANY - 1)
    assert encoder.load().startswith("OpenVINO")
    few, kept = encoder.encode(TEXTS), encoder.kept_together
    encoder.expect(MANY)
    assert (encoder.description, kept, encoder.kept_together) == (gpu.description, KEPT_TOGETHER, KEPT_FROM_GPU)
    assert (encoder.encode(TEXTS) * few).sum(axis=1).min() >= BOUNDS[FLOAT16]


def test_a_cache_that_lacks_many_texts_takes_the_gpu(
    gpu: GpuModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = Encoder()
    words = [f"{number:03}" for number in range(100)]
    assert (embed(tmp_path / "cache", encoder, words).encoded, encoder.load()[:8]) == (100, "OpenVINO")
    monkeypatch.setattr(encoders, "MANY", 50)
    found = embed(tmp_path / "cache", encoder, [*words, *(f"a {word}" for word in words)])
    assert (found.encoded, found.cached, encoder.description) == (100, 100, gpu.description)


@pytest.mark.parametrize(
    "other",
    [
        Encoder(runtime="openvino-float32"),
        Encoder("hashing"),
        Encoder(runtime="sentence-transformers"),
    ],
    ids=["openvino", "hashing", "sentence-transformers"],
)
def test_a_runtime_that_settings_name_is_kept(gpu: GpuModel, other: Encoder) -> None:
    other.expect(MANY)
    assert other.description != gpu.description


def test_an_error_of_the_gpu_ends_nothing(
    gpu: GpuModel, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")

    encoder = Encoder()
    encoder.expect(MANY)
    with monkeypatch.context() as broken:
        broken.setattr(gpu._loaded, "forward", full)
        with pytest.raises(GpuFailed, match="out of memory"):
            gpu.encode(TEXTS, 64)
        assert encoder.encode(TEXTS).shape == (len(TEXTS), 384)
    assert "CUDA out of memory. Tried to allocate 2.00 GiB.; the processor encodes instead" in caplog.text
    encoder.expect(MANY)
    assert (encoder.description or "").startswith("OpenVINO")


@pytest.mark.skipif(HAS_GPU, reason="a GPU")
def test_a_driver_without_a_gpu_that_torch_can_use_leaves_texts_to_the_processor(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(encoders, "has_driver", lambda: True)
    with pytest.raises(NotSupported, match="finds no GPU that it can use"):
        GpuModel(PACKAGED_MODEL)
    encoder = Encoder()
    with caplog.at_level(logging.WARNING):
        encoder.expect(MANY)
    assert encoder.load().startswith("OpenVINO")
    assert "is not run on the GPU: torch" in caplog.text


def test_without_a_driver_nothing_is_loaded_to_find_out() -> None:
    if has_driver():
        pytest.skip("a driver")
    encoder = Encoder()
    encoder.expect(MANY)
    assert encoder.description is None
