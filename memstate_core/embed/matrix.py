"""A column of vectors as one array."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl


def matrix(embeddings: pl.Series) -> npt.NDArray[np.float32]:
    """A column of vectors of one dimension (an array type), as one array, float32, n x d."""
    dtype = embeddings.dtype
    assert isinstance(dtype, pl.Array)
    return np.ascontiguousarray(embeddings.to_numpy(), dtype=np.float32).reshape(len(embeddings), *dtype.shape)
