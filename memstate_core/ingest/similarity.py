"""Topics and texts as vectors, for whatever compares them within a scope. Scopes are never compared with each other."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from memstate_core.embed.encoder import Vectors


@dataclass(frozen=True)
class Embeddings:
    """Topics or texts with their vectors: ids and scopes (n), unit vectors (float32, n x 384)."""

    ids: pl.Series
    scopes: pl.Series
    vectors: Vectors
