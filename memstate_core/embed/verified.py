"""Models on OpenVINO or a GPU whose vectors were compared with those of sentence-transformers when they were loaded.

Invariant: a model that this module returns gives vectors within `BOUNDS`, as far as the probes show.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from memstate_core.embed.gpu_model import FLOAT16, GpuModel
from memstate_core.embed.model_files import NotSupported
from memstate_core.embed.openvino_model import BFLOAT16, FLOAT32, OpenVinoModel
from memstate_core.embed.probes import PROBES, least_cosine
from memstate_core.embed.sentence_model import model_folder

BOUNDS = {BFLOAT16: 0.9999, FLOAT16: 0.9999, FLOAT32: 0.999999}
"""The least cosine to the vector of sentence-transformers, for each precision."""


_Loaded = TypeVar("_Loaded", OpenVinoModel, GpuModel)


class VectorsDiffer(NotSupported):
    """A runtime gives other vectors than sentence-transformers."""


def verified_model(model: str, *, is_exact: bool, threads: int | None = None) -> OpenVinoModel:
    """A model on OpenVINO.

    Args:
        model: the packaged model, or the folder of another, which sentence-transformers loads once for comparison.
        is_exact: whether to compute in float32 also where the processor has instructions for bfloat16.
        threads: how many threads encode; None for one a core.

    Raises:
        NotSupported: OpenVINO is missing or cannot run the model; the message says why.
        VectorsDiffer: it gives other vectors.
        ModelUnavailable: sentence-transformers cannot load the model either.
    """
    return _verified(model, lambda: OpenVinoModel(model_folder(model), is_exact=is_exact, threads=threads))


def verified_on_gpu(model: str) -> GpuModel:
    """A model on the GPU; arguments and errors as for `verified_model`."""
    return _verified(model, lambda: GpuModel(model))


def _verified(model: str, load: Callable[[], _Loaded]) -> _Loaded:
    try:
        loaded = load()
        cosine = least_cosine(model, lambda texts: loaded.encode(texts, len(PROBES)))
    except ImportError as error:
        raise NotSupported(f"{error.name or 'OpenVINO'} cannot be imported") from error
    except (OSError, KeyError, ValueError, RuntimeError) as error:
        raise NotSupported(f"{type(error).__name__}: {error}".splitlines()[0]) from error
    if not cosine >= BOUNDS[loaded.precision]:  # so that NaN is refused
        expected = BOUNDS[loaded.precision]
        raise VectorsDiffer(f"cosine {cosine:.6f} to the vectors of sentence-transformers, expected {expected} or more")
    return loaded
