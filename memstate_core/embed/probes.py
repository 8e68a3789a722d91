"""Texts whose vectors are known: a model on another runtime must give those of sentence-transformers.

The packaged model's vectors are in this package. Those of another model are computed once by sentence-transformers
and kept in the user's cache folder, under a name that changes with the model's place, size and time.

Invariant: the kept vectors come from sentence-transformers in float32.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from memstate_core.embed.sentence_model import PACKAGED_MODEL, SentenceModel, model_folder

_LONG = "The harbour master's report of 14 March lists every boat, its berth and what its owner owes. "
PROBES = (
    "The boat sank.",
    "Maria's flight to São Paulo leaves on 3 May 2026 at 07:45, gate B12.",
    _LONG * 3,
    _LONG * 7,
)
"""A few words, a sentence with digits and accents, and two longer texts."""
_PACKAGED = Path(__file__).with_name("probe_vectors.npy")

Vectors = npt.NDArray[np.float32]


def least_cosine(model: str, encode: Callable[[tuple[str, ...]], Vectors]) -> float:
    """The least cosine between vectors of the probes and those of sentence-transformers; -1 if their shapes differ.

    Args:
        model: the model, as settings name it.
        encode: encodes texts on the runtime in question.

    Raises:
        ModelUnavailable: sentence-transformers cannot load the model.
    """
    expected, found = _expected(model), encode(PROBES)
    return float((expected * found).sum(axis=1).min()) if expected.shape == found.shape else -1.0


def are_known(model: str) -> bool:
    """Whether the vectors of the probes by sentence-transformers are known, so that it need not be loaded for them."""
    try:
        return model == PACKAGED_MODEL or _cached(model_folder(model)).is_file()
    except OSError:
        return False


def _expected(model: str) -> Vectors:
    path = _PACKAGED if model == PACKAGED_MODEL else _cached(model_folder(model))
    try:
        kept: Vectors = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        kept = SentenceModel(model).encode(PROBES, len(PROBES))
        _keep(path, kept)
    return kept


def _cached(folder: Path) -> Path:
    weights = (folder / "model.safetensors").stat()
    name = hashlib.sha256(f"{folder.resolve()}\n{weights.st_size}\n{weights.st_mtime_ns}\n{PROBES}".encode())
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return caches / "memstate" / f"probe-vectors-{name.hexdigest()[:32]}.npy"


def _keep(path: Path, vectors: Vectors) -> None:
    """Writes a file whole or not at all; a folder that cannot be written costs the next process the time again."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            np.save(Path(folder) / path.name, vectors, allow_pickle=False)
            (Path(folder) / path.name).replace(path)
    except OSError:
        return
