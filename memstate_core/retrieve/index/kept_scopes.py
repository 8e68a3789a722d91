"""The parts of an earlier index that a new one takes over: those of scopes whose documents are the same.

The statistics of terms are those of one scope, rows are counted within it, and windows do not cross it. So the index of
a scope follows from its documents alone, and that of the scopes that did not change is copied.

Invariant: the files are those that a whole build writes, to the last byte.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from memstate_core.model.frames import symmetric_difference
from memstate_core.retrieve.index.bm25 import Runs, read_runs, split_runs
from memstate_core.retrieve.index.layout import placed_scopes, read_array, scope_layout

SCOPES_FILE = "scopes.parquet"


class EarlierIndex:
    """The index of an earlier snapshot, made by the same version of memstate and the same model.

    Args:
        folder: that of the snapshot.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._places = pl.read_parquet(folder / SCOPES_FILE, glob=False)

    def rows(self, file: str, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """The rows of one of its Parquet files."""
        return pl.read_parquet(self.folder / file, columns=None if columns is None else list(columns), glob=False)

    def array(self, file: str) -> npt.NDArray[np.float32]:
        """One of its arrays."""
        return read_array(self.folder / file)

    def same(self, documents: pl.DataFrame, file: str) -> set[str]:
        """The scopes whose documents are those that a file has.

        Args:
            documents: scope and whatever the index of a document is made of.
            file: the Parquet file that has the same columns.
        """
        odd = symmetric_difference(documents, self.rows(file, documents.columns))
        return set(documents["scope"].unique()) - set(odd["scope"].unique())

    def places(self, name: str) -> dict[str, tuple[int, int]]:
        """Where scopes lie in a file, by the name that `scopes.parquet` has for it."""
        rows = placed_scopes(self._places, name)
        return {scope: (first, count) for scope, first, count in rows.select("scope", "first", "count").iter_rows()}


def joined_terms(
    earlier: EarlierIndex | None, scopes: Iterable[str], same: set[str], index: tuple[str, str], made: Sequence[Runs]
) -> list[Runs]:
    """The runs of all scopes in order: those made now, and those of unchanged scopes from an earlier index.

    Args:
        earlier: the earlier index; without it, what was made now is all.
        scopes: the scopes in order.
        same: those to take over.
        index: its folder and the name of its layout.
        made: the runs of the others.
    """
    if earlier is None or not same:
        return list(made)
    folder, name = index
    places, new = earlier.places(name), {scope: one for runs in made for scope, one in split_runs(runs).items()}
    found = [
        read_runs(earlier.folder / folder, scope, places.get(scope, (0, 0))) if scope in same else new.get(scope)
        for scope in scopes
    ]
    return [one for one in found if one is not None] or list(made)


def joined_rows(
    earlier: EarlierIndex | None,
    layout: pl.DataFrame,
    same: set[str],
    file: str,
    made: npt.NDArray[Any],
    part: pl.DataFrame,
) -> npt.NDArray[Any]:
    """An array of one row a piece of evidence: rows made now, and those of unchanged scopes.

    Args:
        earlier: the earlier index; without it, what is made now is all.
        layout: where the scopes lie in the new file.
        same: those to take over.
        file: the array.
        made: the rows of the other scopes.
        part: the evidence of the other scopes, in its order.
    """
    if earlier is None or not same:
        return made
    held, places = read_array(earlier.folder / file), earlier.places("evidence")
    own = {scope: (first, count) for scope, first, count in scope_layout(part).iter_rows()}
    slices = []
    for scope in layout["scope"]:
        source, (first, count) = (held, places[scope]) if scope in same else (made, own[scope])
        slices.append(source[first : first + count])
    return np.concatenate(slices)
