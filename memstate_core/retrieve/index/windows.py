"""The windows of turns: the adjacent turns of each, and the lengths of their summed vectors.

A turn alone is often too short to match ("Yes, last week!"), so it is also scored as part of a window: the turn before
it, itself, and the turn after it. The vector of a window is the normalised sum of its turns' vectors; only the length
of the sum is stored, since cosine(q, sum) = sum of cosines(q, turn) / |sum|.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

MISSING = -1
_BLOCK = 16_384
Ints = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float32]


def session_windows(evidence: pl.DataFrame, starts: npt.NDArray[Any]) -> Ints:
    """The position of each piece of evidence in its session.

    Args:
        evidence: columns scope, session_id, turn and observed_at, sorted by scope.
        starts: the file row at which each row's scope starts (n).

    Returns:
        int32, n x 3: the row before, the row after (`MISSING` at either end) and the first row of the
        session, which identifies it. Rows are counted within the scope. Without a session there are no neighbours.
    """
    numbered = evidence.select("scope", "session_id", "turn", "observed_at", row=pl.int_range(pl.len()))
    numbered = numbered.with_columns(local=pl.col("row") - pl.Series(starts))
    session, here = ["scope", "session_id"], pl.col("local")
    beside = {"before": here.shift(1).over(session), "after": here.shift(-1).over(session)}
    placed = (
        numbered.sort("scope", "session_id", "turn", "observed_at", "row", nulls_last=True)
        .with_columns(**beside, first=here.min().over(session))
        .sort("row")
    )
    alone = pl.col("session_id").is_null()
    columns = [pl.when(alone).then(MISSING).otherwise(name).fill_null(MISSING) for name in beside]
    first = pl.when(alone).then("local").otherwise("first")
    return placed.select(before=columns[0], after=columns[1], first=first).cast(pl.Int32).to_numpy()


def window_members(windows: Ints, starts: npt.NDArray[Any]) -> pl.DataFrame:
    """The other members of each row's window.

    Args:
        windows: the result of `session_windows`.
        starts: the file row at which each row's scope starts (n).

    Returns:
        `row` and `member`, both counted over the whole file (UInt32), without the row itself.
    """
    sides = [(np.flatnonzero(windows[:, side] != MISSING), side) for side in (0, 1)]
    rows = np.concatenate([found for found, _ in sides])
    members = np.concatenate([windows[found, side] + starts[found] for found, side in sides])
    return pl.DataFrame({"row": rows.astype(np.uint32), "member": members.astype(np.uint32)})


def window_lengths(windows: Ints, starts: npt.NDArray[Any], vector_rows: npt.NDArray[Any], vectors: Floats) -> Floats:
    """The length of the summed vectors of each row's window (float32, n); 0 if no member has a vector.

    Args:
        windows: the result of `session_windows`.
        starts: the file row at which each row's scope starts (n).
        vector_rows: the row of each piece of evidence in `vectors`, or -1 without one (n).
        vectors: unit vectors (float32, m x d).
    """
    padded = np.append(vector_rows, MISSING)
    files = np.column_stack([np.arange(len(windows)), *(_file_rows(windows[:, side], starts) for side in (0, 1))])
    lengths = np.zeros(len(windows), dtype=np.float32)
    for low in range(0, len(windows), _BLOCK):
        members = padded[files[low : low + _BLOCK]]
        total = sum(_gather(vectors, members[:, column]) for column in range(3))
        lengths[low : low + _BLOCK] = np.linalg.norm(total, axis=1)
    return lengths


def _file_rows(side: Ints, starts: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.where(side == MISSING, MISSING, side + starts)


def _gather(vectors: Floats, rows: npt.NDArray[Any]) -> Floats:
    found = np.zeros((len(rows), vectors.shape[1]), dtype=np.float32)
    known = rows != MISSING
    found[known] = vectors[rows[known]]
    return found
