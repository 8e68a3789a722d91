"""The sentence encoder: chooses what runs its model, and only when it encodes.

OpenVINO runs a BERT in half a second after the process starts, without torch, and several times as fast as
sentence-transformers, which runs everything else. Both have the same vectors: what OpenVINO gives is compared with
known vectors whenever a model is loaded, and not used if it differs by more than a bound.

Invariant: vectors have unit length, so that a dot product is a cosine similarity; two runtimes of one model differ by
less than `verified.BOUNDS`.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from memstate_core.embed.bert_graph import NotSupported
from memstate_core.embed.model_name import ModelName
from memstate_core.embed.openvino_model import OpenVinoModel
from memstate_core.embed.sentence_model import DIMENSION as DIMENSION
from memstate_core.embed.sentence_model import PACKAGED_MODEL as PACKAGED_MODEL
from memstate_core.embed.sentence_model import SentenceModel
from memstate_core.embed.verified import VectorsDiffer, verified_model

Runtime = Literal["auto", "openvino-float32", "sentence-transformers"]
Vectors = npt.NDArray[np.float32]
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
        threads: how many threads encode; None for one a core.
    """

    def __init__(
        self,
        model: str = PACKAGED_MODEL,
        batch_size: int = 64,
        runtime: Runtime = "auto",
        *,
        threads: int | None = None,
    ) -> None:
        self.model = model
        self._named = ModelName.parsed(model)
        self._batch_size, self._runtime, self._threads = batch_size, runtime, threads
        self._loaded: _Model | None = None

    @property
    def description(self) -> str | None:
        """What runs the model, with its version and precision; None until a text was encoded."""
        return None if self._loaded is None else self._loaded.description

    def load(self) -> str:
        """Loads the model unless it is loaded; what runs it.

        Raises:
            ModelUnavailable: the model is not on this machine or has another dimension.
        """
        if self._loaded is None:
            fast = None if self._runtime == "sentence-transformers" else self._on_openvino()
            self._loaded = fast or SentenceModel(self._named.model, self._threads)
        return self._loaded.description

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
        self.load()
        assert self._loaded is not None
        return self._loaded.encode([text[:_READ] for text in texts], self._batch_size)

    def _on_openvino(self) -> OpenVinoModel | None:
        """The model on OpenVINO, or None where sentence-transformers encodes instead."""
        try:
            return verified_model(
                self._named.model, is_exact=self._runtime == "openvino-float32", threads=self._threads
            )
        except NotSupported as reason:
            level = logging.WARNING if isinstance(reason, VectorsDiffer) else logging.INFO
            _log.log(level, "%s is not run by OpenVINO but by sentence-transformers: %s", self.model, reason)
        return None
