"""The sentence encoder: chooses what runs its model, and only when it encodes.

OpenVINO runs a BERT in half a second after the process starts, without torch, and several times as fast as
sentence-transformers, which runs everything else. Both have the same vectors: what OpenVINO gives is compared with
known vectors whenever a model is loaded, and not used if it differs by more than a bound. A model that settings place
at an endpoint is asked there, and nothing is loaded; `hashing` needs no model at all. Many texts are encoded on an
NVIDIA GPU where there is one, by a model that is compared with the known vectors, too.

Invariant: vectors have unit length, so that a dot product is a cosine similarity; two runtimes of one model differ by
less than `verified.BOUNDS`.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, Self

import numpy as np
import numpy.typing as npt

from memstate_core.embed.endpoint_model import EndpointModel
from memstate_core.embed.gpu_model import GpuFailed, GpuModel, has_driver
from memstate_core.embed.hashing_model import HASHING_MODEL, HashingModel
from memstate_core.embed.model_files import NotSupported
from memstate_core.embed.model_name import ModelName
from memstate_core.embed.model_place import found_model
from memstate_core.embed.openvino_model import OpenVinoModel
from memstate_core.embed.sentence_model import DIMENSION as DIMENSION
from memstate_core.embed.sentence_model import PACKAGED_MODEL as PACKAGED_MODEL
from memstate_core.embed.sentence_model import SentenceModel
from memstate_core.embed.verified import verified_model, verified_on_gpu
from memstate_core.model.errors import ModelUnavailable

if TYPE_CHECKING:
    from memstate_core.policy.sections.embedding import EmbeddingSettings

Runtime = Literal["auto", "openvino-float32", "sentence-transformers"]
Vectors = npt.NDArray[np.float32]
KEPT_TOGETHER = 512
"""Texts that are encoded on this machine between two writes to the cache."""
MANY = 4_096
"""Texts from which a GPU, whose libraries take some seconds to load, encodes them sooner."""
KEPT_FROM_GPU = 16 * KEPT_TOGETHER
"""The same for a GPU, whose batches would stay half empty otherwise."""
_READ = 100_000
"""Characters of a text that are tokenised: many times what fits into the context of an encoder."""
_log = logging.getLogger("memstate.encoder")


class _Model(Protocol):
    description: str

    def encode(self, texts: Sequence[str], batch_size: int) -> Vectors: ...


class Encoder:
    """A sentence encoder that loads its model when it encodes the first text.

    Args:
        model: the name on record (`memstate_core.embed.model_name`): a model, with prefixes or without.
        batch_size: how many texts are encoded together at most.
        runtime: what runs the model, as in the settings.
        expected: how many dimensions its vectors must have; 0 for any number.
        access: how an endpoint is reached, for a model that has one.
        threads: how many threads encode; None for one a core.
        base: where the relative path of a model begins; None for the working directory.
    """

    def __init__(
        self,
        model: str = PACKAGED_MODEL,
        batch_size: int = 64,
        runtime: Runtime = "auto",
        *,
        threads: int | None = None,
        expected: int = 0,
        access: EmbeddingSettings | None = None,
        base: Path | None = None,
    ) -> None:
        self.model, self.expected, self.base = model, expected, base
        self._named = ModelName.parsed(model)
        self._batch_size, self._runtime, self._threads = batch_size, runtime, threads
        self._loaded: _Model | None = None
        self._access = access

    def expect(self, texts: int) -> None:
        """Chooses what encodes by how many texts are to be encoded now: many on a GPU, where there is one.

        Raises:
            ModelUnavailable: the model is not on this machine.
        """
        is_here = self._named.model != HASHING_MODEL and not self.is_at_endpoint
        if texts >= MANY and self._runtime == "auto" and is_here and has_driver():
            self._loaded = self._on_gpu or self._loaded

    @property
    def kept_together(self) -> int:
        """How many texts may be lost if a process is killed: their vectors are cached together."""
        if self._named.endpoint:
            return self._batch_size
        return KEPT_FROM_GPU if isinstance(self._loaded, GpuModel) else KEPT_TOGETHER

    @property
    def is_at_endpoint(self) -> bool:
        """Whether another machine may encode the texts."""
        return bool(self._named.endpoint)

    @property
    def is_cached(self) -> bool:
        """Whether vectors are kept across runs; those of `hashing` are computed faster than they are read."""
        return self._named.model != HASHING_MODEL or bool(self._named.endpoint)

    @classmethod
    def of(cls, settings: EmbeddingSettings, base: Path | None = None) -> Self:
        """The encoder that settings describe (section `[embedding]`); `base` as for an encoder."""
        name = ModelName(settings.model, settings.query_prefix, settings.passage_prefix, settings.endpoint)
        dimension, runtime = settings.dimension, settings.runtime
        return cls(str(name), settings.batch_size, runtime, expected=dimension, access=settings, base=base)

    @property
    def description(self) -> str | None:
        """What runs the model, with its version and precision; None until a text was encoded."""
        return None if self._loaded is None else self._loaded.description

    @cached_property
    def dimension(self) -> int:
        """How many dimensions the vectors have; a model that is not the packaged one is loaded to know it.

        Raises:
            ModelUnavailable: the model is not on this machine.
        """
        return DIMENSION if self._named.model == PACKAGED_MODEL else self.encode(["dimension"]).shape[1]

    def load(self) -> str:
        """Loads the model unless it is loaded; what runs it.

        Raises:
            ModelUnavailable: the model is not on this machine.
        """
        if self._loaded is None:
            self._loaded = (
                self._at_endpoint()
                or self._hashed()
                or self._on_openvino()
                or SentenceModel(self._found, self._threads)
            )
        return self._loaded.description

    def questions(self, texts: Sequence[str]) -> list[str]:
        """Questions as the model expects them: each after the prefix of questions."""
        return [self._named.query_prefix + text for text in texts]

    def passages(self, texts: Sequence[str]) -> list[str]:
        """Texts that are searched as the model expects them: each after the prefix of passages."""
        return [self._named.passage_prefix + text for text in texts]

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors of texts that have their prefixes, one row per text (float32, len(texts) x d).

        Raises:
            ModelUnavailable: the model is not on this machine.
        """
        if not len(texts):
            return np.zeros((0, self.dimension), dtype=np.float32)
        self.load()
        assert self._loaded is not None
        read = [text[:_READ] for text in texts]
        try:
            return self._loaded.encode(read, self._batch_size)
        except GpuFailed as error:
            _log.warning("%s: %s; the processor encodes instead", self._loaded.description, error)
            self._loaded = self._on_gpu = None
            return self.encode(texts)

    def _at_endpoint(self) -> EndpointModel | None:
        """The model at its endpoint, None if it has none."""
        if not self._named.endpoint:
            return None
        if self._access is None:
            raise ModelUnavailable(self._named.model, f"it runs at {self._named.endpoint}, and no access is given")
        return EndpointModel(self._named.endpoint, self._named.model, self._access)

    @cached_property
    def _found(self) -> str:
        """The model as the runtimes take it.

        Raises:
            ModelUnavailable: the model is not on this machine.
        """
        return found_model(self._named.model, self.base)

    def _hashed(self) -> HashingModel | None:
        return HashingModel() if self._named.model == HASHING_MODEL else None

    @cached_property
    def _on_gpu(self) -> GpuModel | None:
        """The model on the GPU, or None where it cannot encode."""
        try:
            return verified_on_gpu(self._found)
        except NotSupported as reason:
            _log.warning("%s is not run on the GPU: %s", self.model, reason)
        return None

    def _on_openvino(self) -> OpenVinoModel | None:
        """The model on OpenVINO, or None where sentence-transformers encodes instead."""
        if self._runtime == "sentence-transformers":
            return None
        try:
            return verified_model(self._found, is_exact=self._runtime == "openvino-float32", threads=self._threads)
        except NotSupported as reason:
            _log.warning("%s is not run by OpenVINO but by sentence-transformers: %s", self.model, reason)
        return None
