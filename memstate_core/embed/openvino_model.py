"""A sentence encoder on OpenVINO: tokenizer, batches, graph and pooling, without torch.

Invariant: a text's vector depends on the text, the model, the precision and the kind of processor, and on nothing
else, to the last bit: in any batch (`padding`) and on any number of threads.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from memstate_core.embed.bert_graph import bert_graph
from memstate_core.embed.model_files import NotSupported, longest, pooling
from memstate_core.embed.openvino_import import openvino
from memstate_core.embed.padding import by_length

Vectors = npt.NDArray[np.float32]
_Running = tuple[Any, list[int], npt.NDArray[np.bool_]]
"""The request of a batch, its rows, and which of its tokens are of a text."""
BFLOAT16, FLOAT32 = "bfloat16", "float32"
_BATCH_TOKENS = 2048
"""Tokens of a batch, padding included: more do not fit into the caches of a core."""
_HINTS = {BFLOAT16: "bf16", FLOAT32: "f32"}


class OpenVinoModel:
    """A model with its tokenizer; not for use by several threads at a time.

    Args:
        folder: a model as sentence-transformers writes it.
        is_exact: whether to compute in float32 also where the processor has instructions for bfloat16.
        threads: how many threads encode; None for one a core.

    Raises:
        NotSupported: the model is no BERT, pools its tokens in an unusual way, or has no tokenizer that can be read.
        ImportError: OpenVINO is not installed.
        OSError: a file cannot be read.
        RuntimeError: OpenVINO refuses the graph.
    """

    def __init__(self, folder: Path, *, is_exact: bool = False, threads: int | None = None) -> None:
        runtime = openvino()
        self._pooled = _pooling(folder)
        self._tokenizer = _tokenizer(folder)
        core = runtime.Core()
        self.precision = BFLOAT16 if not is_exact and _has_bfloat16(core) else FLOAT32
        options = {
            "INFERENCE_PRECISION_HINT": _HINTS[self.precision],
            "PERFORMANCE_HINT": "THROUGHPUT" if threads is None else "LATENCY",  # a batch per core, or one at a time
            "ENABLE_CPU_PINNING": False,  # pinned threads of two processes wait for the same core
        } | ({} if threads is None else {"INFERENCE_NUM_THREADS": threads})
        compiled = core.compile_model(bert_graph(folder), "CPU", options)
        self._dimension = compiled.output(0).partial_shape[2].get_length()
        at_once = 2 * compiled.get_property(
            "OPTIMAL_NUMBER_OF_INFER_REQUESTS"
        )  # the next ones wait for no answer to be read
        self._requests = [compiled.create_infer_request() for _ in range(at_once)]
        self.description = f"OpenVINO {runtime.__version__.split('-')[0]} in {self.precision}"

    def encode(self, texts: Sequence[str], batch_size: int) -> Vectors:
        """Unit vectors, one row per text (float32).

        Args:
            texts: at least one text.
            batch_size: how many texts are encoded together at most.
        """
        tokens = [encoding.ids for encoding in self._tokenizer.encode_batch(list(texts))]
        vectors = np.empty((len(tokens), self._dimension), np.float32)
        free, running = list(self._requests), deque[_Running]()
        try:
            for length, rows in _batches([len(ids) for ids in tokens], batch_size):
                request = free.pop() if free else self._done(running.popleft(), vectors)
                running.append(_started(request, [tokens[row] for row in rows], length, rows))
            while running:
                self._done(running.popleft(), vectors)
        finally:
            for request, *_ in running:  # after an error; a request that is still running could not be used again
                request.wait()
        return vectors

    def _done(self, running: _Running, vectors: Vectors) -> Any:
        """Waits for a batch and writes its vectors to their rows; its request, which is free then."""
        request, rows, known = running
        request.wait()
        found = self._pooled(request.get_output_tensor(0).data, known)
        vectors[rows] = found / np.linalg.norm(found, axis=1, keepdims=True)
        return request


def _started(request: Any, tokens: Sequence[list[int]], length: int, rows: list[int]) -> _Running:
    """Starts to encode a batch, which goes on beside this thread."""
    ids, known = np.zeros((len(tokens), length), np.int32), np.zeros((len(tokens), length), np.bool_)
    for row, found in enumerate(tokens):
        ids[row, : len(found)] = found
        known[row, : len(found)] = True
    mask = np.where(known, np.float32(0), np.float32(-np.inf))[:, None, None, :]
    request.start_async({"ids": ids, "mask": mask})
    return request, rows, known


def _batches(lengths: Sequence[int], batch_size: int) -> Iterator[tuple[int, list[int]]]:
    """Rows of one padded length each, in numbers that are powers of two: a new shape costs some milliseconds."""
    for length, rows in by_length(lengths):
        most, done = min(batch_size, max(1, _BATCH_TOKENS // length)), 0
        while done < len(rows):
            size = 1 << (min(most, len(rows) - done).bit_length() - 1)
            yield length, rows[done : done + size]
            done += size


def _has_bfloat16(core: Any) -> bool:
    return "BF16" in core.get_property("CPU", "OPTIMIZATION_CAPABILITIES")


def _tokenizer(folder: Path) -> Any:
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    except Exception as error:  # the library raises nothing narrower
        raise NotSupported(f"tokenizer.json cannot be read: {error}") from error
    limit = longest(folder)
    if limit is None:
        tokenizer.no_truncation()
    else:
        tokenizer.enable_truncation(limit)
    tokenizer.no_padding()
    return tokenizer


def _pooling(folder: Path) -> Any:
    """The function that makes one row of a text's token states."""
    if pooling(folder) == "mean":
        return lambda states, known: np.where(known[:, :, None], states, np.float32(0)).sum(axis=1)
    return lambda states, _: states[:, 0]
