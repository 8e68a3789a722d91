"""Damage of a snapshot's files that reading notices: they do not open, or a block does not unpack.

Other changed bytes are found by their digests only (`memstate verify`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import polars as pl

from memstate_core.retrieve.index.layout import read_array
from memstate_core.run.run import GRAPH_FILE
from memstate_core.state.absent import unreadable
from memstate_core.state.snapshots import Snapshot

_GRAPH_START = b"KUZU"


@contextmanager
def damage_named(snapshot: Snapshot) -> Iterator[None]:
    """Turns the error of a file that cannot be decoded into `SnapshotDamaged`, or `SnapshotAbsent`.

    An error of Kuzu has many causes, so a file must differ from the manifest as well.
    """
    try:
        yield
    except pl.exceptions.PolarsError as error:
        raise unreadable(snapshot.home, snapshot.name, [_first_line(error)]) from None
    except RuntimeError:
        if problems := snapshot.damage():
            raise unreadable(snapshot.home, snapshot.name, problems) from None
        raise


def unopenable(snapshot: Snapshot) -> list[str]:
    """The files of a snapshot that do not open; reads their heads and footers only."""
    return [f"{name}: {problem}" for name in snapshot.manifest.files if (problem := _problem(snapshot, name))]


def _problem(snapshot: Snapshot, name: str) -> str:
    path = snapshot.path / name
    try:
        if name.endswith(".parquet"):
            pl.read_parquet_schema(path)
        elif name.endswith(".npy"):
            read_array(path)
        elif name == GRAPH_FILE:
            with path.open("rb") as file:
                return "" if file.read(len(_GRAPH_START)) == _GRAPH_START else "is no graph of Kuzu"
    except (pl.exceptions.PolarsError, ValueError, EOFError) as error:
        return _first_line(error)
    return ""


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
