"""Which existing topic a new text continues, if any: the nearest one, when it stands out.

How alike two topics of a scope are that have nothing to do with each other differs from scope to scope.
So the bar is measured there: the mean cosine between different topics of the scope plus four standard
deviations, and never below the policy's floor. Scopes are never compared with each other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from memstate_core.embed.encoder import Vectors

DEVIATIONS = 4.0
_SAMPLE = 1000
_CEILING = 0.98


@dataclass(frozen=True)
class Embeddings:
    """Topics or texts with their vectors: ids and scopes (n), unit vectors (float32, n x 384)."""

    ids: pl.Series
    scopes: pl.Series
    vectors: Vectors


def continued(new: Embeddings, existing: Embeddings, floor: float) -> pl.DataFrame:
    """The existing topic that each new text continues.

    Returns:
        Columns id (of the new text), topic_id, score (cosine), bar; only rows that pass the bar.
    """
    shared = new.scopes.unique().filter(new.scopes.unique().is_in(existing.scopes.unique().implode()))
    found = [_within_scope(_only(new, scope), _only(existing, scope), floor) for scope in shared.sort()]
    schema = {"id": pl.String, "topic_id": pl.String, "score": pl.Float64, "bar": pl.Float64}
    return pl.concat([pl.DataFrame(schema=schema), *found]).filter(pl.col("score") >= pl.col("bar"))


def _only(given: Embeddings, scope: str) -> Embeddings:
    mask = given.scopes == scope
    return Embeddings(given.ids.filter(mask), given.scopes.filter(mask), given.vectors[mask.to_numpy()])


def _within_scope(new: Embeddings, existing: Embeddings, floor: float) -> pl.DataFrame:
    cosines = new.vectors @ existing.vectors.T
    best = cosines.argmax(axis=1)
    scores = np.round(cosines[np.arange(len(best)), best].astype(np.float64), 6)
    bar = pl.lit(_bar(existing.vectors, floor))
    return pl.DataFrame({"id": new.ids, "topic_id": existing.ids[best], "score": scores}).with_columns(bar=bar)


def _bar(vectors: Vectors, floor: float) -> float:
    sample = vectors[:: max(1, len(vectors) // _SAMPLE)]
    others = (sample @ sample.T)[~np.eye(len(sample), dtype=bool)]
    background = float(others.mean() + DEVIATIONS * others.std()) if others.size else 0.0
    return round(min(_CEILING, max(floor, background)), 6)
