"""The layout of files with many scopes: the rows of a scope are contiguous, and a small table has their position."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

SERVED_STATE = "active"
"""The state of the topics that a default query may return."""

_ROW_GROUP = 8192

Place = tuple[int, int]
"""The first row of a scope in a file, and the number of its rows."""


def scope_layout(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows of each scope in a frame sorted by scope: `scope`, `first` and `count`."""
    numbered = rows.select("scope", row=pl.int_range(pl.len(), dtype=pl.Int64))
    return numbered.group_by("scope", maintain_order=True).agg(first=pl.col("row").min(), count=pl.len().cast(pl.Int64))


def place_scopes(layouts: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """One row a scope: `<name>_first` and `<name>_count` for each of the layouts."""
    scopes = pl.concat([layout["scope"] for layout in layouts.values()]).unique().sort().to_frame()
    for name, layout in layouts.items():
        named = layout.rename({"first": f"{name}_first", "count": f"{name}_count"})
        scopes = scopes.join(named, on="scope", how="left", maintain_order="left")
    return scopes.fill_null(0)


def placed_scopes(places: pl.DataFrame, name: str) -> pl.DataFrame:
    """The layout that `place_scopes` was given under a name, from its result."""
    rows = places.select("scope", first=f"{name}_first", count=f"{name}_count")
    return rows.filter(pl.col("count") > 0)


class Places:
    """A table of `place_scopes`, read from its file."""

    def __init__(self, path: Path) -> None:
        rows = pl.read_parquet(path, glob=False).rows(named=True)
        self._rows = {row["scope"]: row for row in rows}

    @property
    def scopes(self) -> list[str]:
        """The scopes that have rows, sorted."""
        return list(self._rows)

    def of(self, scope: str, name: str) -> Place:
        """The rows of a scope in the file of that name; (0, 0) for an unknown scope."""
        row = self._rows.get(scope, {})
        return row.get(f"{name}_first", 0), row.get(f"{name}_count", 0)


def served_counts(folder: Path) -> pl.DataFrame:
    """How many topics a snapshot serves in each scope (columns scope and active)."""
    return pl.read_parquet(folder / "scopes.parquet").select("scope", active="topic_count")


def write_rows(rows: pl.DataFrame, path: Path) -> None:
    """Writes rows sorted by scope, in row groups small enough for a scope to be read alone."""
    rows.write_parquet(path, compression="zstd", row_group_size=_ROW_GROUP, statistics=True)


def read_array(path: Path) -> npt.NDArray[Any]:
    """An array, memory-mapped and read-only; a plain `ndarray`, whose slices cost a fraction of those of `memmap`."""
    mapped: npt.NDArray[Any] = np.load(path, mmap_mode="r")
    return mapped.view(np.ndarray)


def read_rows(path: Path, place: Place) -> pl.DataFrame:
    """The rows at a place; reads only the row groups that hold them."""
    return pl.scan_parquet(path, glob=False).slice(*place).collect()
