"""Segmentation of sessions by subject.

TextTiling (Hearst 1997, Computational Linguistics 23(1)) over sentence embeddings: at each gap between
two turns the mean vectors of the turns before and after are compared; where their similarity dips deeply
below the peaks on both sides, the subject has changed. All sessions are cut at once. nltk's TextTiling, which compares
words, makes nine times the errors on turns of chat (`tests/benchmarks/chat_text.py`).

Invariant: a segment never leaves its session, and every turn is in exactly one segment.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from memstate_core.embed.encoder import Vectors
from memstate_core.policy.settings import SegmentSettings


def segment(sessions: pl.Series, vectors: Vectors, settings: SegmentSettings) -> pl.Series:
    """A segment number for each turn.

    Args:
        sessions: the session of each turn, turns of a session together and in order.
        vectors: the turns' unit vectors (float32, n x d), in the same order.
        settings: window and lengths, in turns.
    """
    if not len(sessions):
        return pl.Series("segment", [], dtype=pl.UInt32)
    gaps = pl.DataFrame({"session": sessions}).with_columns(
        at=pl.int_range(pl.len()).over("session"),
        length=pl.len().over("session"),
        row=pl.int_range(pl.len(), dtype=pl.Int64),
    )
    gaps = gaps.with_columns(similarity=pl.Series(_similarity(gaps, vectors, settings.window)))
    starts = gaps.select(_is_boundary(settings.min_turns) | (pl.col("at") == 0)).to_series()
    return _cut_long(starts, settings.max_turns)


def _similarity(gaps: pl.DataFrame, vectors: Vectors, window: int) -> npt.NDArray[np.float64]:
    """Cosine of the means of up to `window` turns before and after the gap that precedes each turn."""
    total = np.concatenate([np.zeros((1, vectors.shape[1])), np.cumsum(vectors, axis=0, dtype=np.float64)])
    row, at, length = (gaps[name].to_numpy() for name in ("row", "at", "length"))
    before = total[row] - total[row - np.minimum(at, window)]
    after = total[row + np.minimum(length - at, window)] - total[row]
    norms = np.linalg.norm(before, axis=1) * np.linalg.norm(after, axis=1)
    similarity: npt.NDArray[np.float64] = (before * after).sum(axis=1) / np.where(norms > 0, norms, 1.0)
    return similarity


def _is_boundary(reach: int) -> pl.Expr:
    """Gaps whose similarity is the lowest within reach and whose depth stands out in their session.

    The depth of a gap is how far the highest similarity within reach on its left and on its right rises
    above it, summed; it stands out above the session's mean plus half a standard deviation.
    """
    inner = (pl.col("at") >= reach) & (pl.col("length") - pl.col("at") >= reach)
    similarity = pl.when(pl.col("at") > 0).then("similarity")
    left = similarity.rolling_max(reach + 1, min_samples=1).over("session")
    right = similarity.reverse().rolling_max(reach + 1, min_samples=1).reverse().over("session")
    lowest = similarity.rolling_min(2 * reach + 1, min_samples=1, center=True).over("session")
    depth = pl.when(pl.col("at") > 0).then(left + right - 2 * pl.col("similarity"))
    cutoff = (depth.mean() + 0.5 * depth.std().fill_null(0.0)).over("session")
    return (inner & (similarity == lowest) & (depth > cutoff)).fill_null(False)


def _cut_long(starts: pl.Series, max_turns: int) -> pl.Series:
    """Numbers the segments and cuts those over `max_turns` into nearly equal parts."""
    frame = pl.DataFrame({"segment": starts.cast(pl.UInt32).cum_sum()}).with_columns(
        at=pl.int_range(pl.len()).over("segment"), length=pl.len().over("segment")
    )
    parts = (pl.col("length") / max_turns).ceil().cast(pl.Int64)
    part = pl.col("at") * parts // pl.col("length")
    return frame.select(segment=pl.struct("segment", part).rle_id()).to_series()
