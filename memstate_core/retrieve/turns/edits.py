"""Messages that were edited: their last wording takes the place of the best of their wordings.

A chat that is exported again may have another wording of a message, which is evidence beside the earlier ones
(`memstate_core.ingest.formats.slack`). The ids say so, in any language and for any question.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from memstate_core.retrieve.index.windows import MISSING

Rows = npt.NDArray[np.intp]
Flags = npt.NDArray[np.bool_]
Scores = npt.NDArray[np.float64]

_EDITED = r"^(slack/.+)/edited-(\d+(?:\.\d+)?)$"


def last_wordings(observations: pl.Series) -> Rows:
    """The row of the last wording of the message of each row; `MISSING` for that one, and for one never edited (n).

    Args:
        observations: the observation id of each row (n).
    """
    found = np.full(len(observations), MISSING)
    frame = observations.to_frame("id").with_row_index("row")
    at = pl.col("id").str.extract(_EDITED, 2).cast(pl.Float64)
    marked = frame.filter(pl.col("id").str.contains("/edited-", literal=True))
    edited = marked.with_columns(id=pl.col("id").str.extract(_EDITED, 1), at=at).drop_nulls("id")
    if edited.is_empty():
        return found
    first = frame.join(edited.select("id").unique(), on="id", how="semi").with_columns(at=pl.lit(-1.0))
    last = edited.sort("at", "row").group_by("id").agg(last=pl.col("row").last())
    pairs = pl.concat([first, edited.select(first.columns)]).join(last, on="id").filter(pl.col("row") != pl.col("last"))
    found[pairs["row"].to_numpy()] = pairs["last"].to_numpy()
    return found


def visible_wordings(last: Rows, seen: Flags) -> Rows:
    """The last wordings that may be returned; `MISSING` for the others (n)."""
    rows: Rows = np.where((last != MISSING) & seen[last], last, MISSING)
    return rows


def exchanged(last: Rows, scores: Scores, seen: Flags) -> Scores:
    """What each row gains where the last wording of a message exchanges places with the best earlier one (n).

    Args:
        last: the row of the last wording of each row (`last_wordings`).
        scores: the score of each row (n).
        seen: which rows may be returned (n).
    """
    gains = np.zeros(len(scores))
    earlier = np.flatnonzero(seen & (visible_wordings(last, seen) != MISSING))
    rising = earlier[np.argsort(scores[earlier], kind="stable")]
    best = dict(zip(last[rising].tolist(), rising.tolist(), strict=True))  # the best earlier one comes last, and stays
    newest, old = np.array(list(best), dtype=np.intp), np.array(list(best.values()), dtype=np.intp)
    above = np.maximum(scores[old] - scores[newest], 0.0)
    gains[newest], gains[old] = above, -above
    return gains
