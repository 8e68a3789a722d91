"""A model on an NVIDIA GPU: torch in float16, for as many texts as make up for the seconds that torch takes to start.

Invariant: on one kind of GPU a text's vector depends on the text and the model and on nothing else, to the last bit.
All batches of a length have the same number of rows, filled up where texts are missing: another shape may be computed
by another kernel, which adds in another order.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from memstate_core.embed.model_files import NotSupported
from memstate_core.embed.padding import by_length
from memstate_core.embed.sentence_model import load

Vectors = npt.NDArray[np.float32]
FLOAT16 = "float16"
BATCH_TOKENS = 16_384
"""Tokens of a batch, padding included: enough to keep a GPU busy, and little of its memory."""
_DRIVER = "libcuda.so.1"


class GpuFailed(RuntimeError):
    """The GPU gave an error while it encoded, such as too little memory."""


def has_driver() -> bool:
    """Whether a driver of NVIDIA is installed; found out without torch, which takes seconds to load."""
    try:
        ctypes.CDLL(_DRIVER)
    except OSError:
        return False
    return True


class GpuModel:
    """A model of any architecture that sentence-transformers loads.

    Args:
        model: the packaged model, or the folder of another.
        device: where torch computes; a processor does so slowly.
        batch_tokens: tokens of a batch, padding included.

    Raises:
        NotSupported: torch cannot use the GPU.
        ModelUnavailable: the model is not on this machine.
    """

    precision = FLOAT16

    def __init__(self, model: str, device: str = "cuda", batch_tokens: int = BATCH_TOKENS) -> None:
        import torch

        if device == "cuda" and not torch.cuda.is_available():
            raise NotSupported(f"torch {torch.__version__} finds no GPU that it can use")
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
        self._loaded = load(model, device).half().eval()
        self._tokens = _tokenizer(self._loaded)
        self._device, self._batch_tokens = device, batch_tokens
        name = torch.cuda.get_device_name() if device == "cuda" else device
        self.description = f"torch {torch.__version__} in {FLOAT16} on {name}"

    def encode(self, texts: Sequence[str], batch_size: int) -> Vectors:  # noqa: ARG002 (as other models)
        """Unit vectors, one row per text (float32).

        Args:
            texts: at least one text.
            batch_size: does not count; a batch has as many texts of a length as its tokens allow.

        Raises:
            GpuFailed: the GPU gave an error.
        """
        import torch

        tokens = self._tokens(list(texts))
        rows, found = [], []
        try:
            with torch.inference_mode():
                for batch, ids, known in self._batches(tokens):
                    features = {"input_ids": ids.to(self._device), "attention_mask": known.to(self._device)}
                    found.append(self._loaded(features)["sentence_embedding"][: len(batch)])
                    rows += batch
                vectors = torch.cat(found).float().cpu().numpy()  # waits for the GPU once
        except RuntimeError as error:
            raise GpuFailed(str(error).splitlines()[0]) from error
        ordered = np.empty_like(vectors)
        ordered[rows] = vectors
        return np.asarray(ordered / np.linalg.norm(ordered, axis=1, keepdims=True), dtype=np.float32)

    def _batches(self, tokens: Sequence[list[int]]) -> Iterator[tuple[list[int], Any, Any]]:
        """Rows of texts with their token numbers and masks, as tensors (texts, length)."""
        import torch

        for length, rows in by_length([len(ids) for ids in tokens]):
            size = max(1, self._batch_tokens // length)
            for start in range(0, len(rows), size):
                batch = rows[start : start + size]
                ids = np.full((size, length), self._loaded.tokenizer.pad_token_id or 0, np.int64)
                known = np.zeros((size, length), np.int64)
                known[:, 0] = 1  # rows without a text need a token to look at
                for row, text in enumerate(batch):
                    ids[row, : len(tokens[text])] = tokens[text]
                    known[row, : len(tokens[text])] = 1
                yield batch, torch.from_numpy(ids), torch.from_numpy(known)


def _tokenizer(loaded: Any) -> Callable[[list[str]], list[list[int]]]:
    """The numbers of the tokens of texts; on all cores where the tokenizer has a part in Rust, as most have."""
    limit, fast = loaded.max_seq_length, getattr(loaded.tokenizer, "backend_tokenizer", None)
    if fast is None:
        return lambda texts: loaded.tokenizer(texts, truncation=limit is not None, max_length=limit)["input_ids"]
    fast.no_padding()
    if limit is not None:
        fast.enable_truncation(limit)
    return lambda texts: [encoding.ids for encoding in fast.encode_batch(texts)]
