"""The tables of a graph that is read several times, each read from Kuzu once."""

from __future__ import annotations

from typing import Protocol

import polars as pl

from memstate_core.state.graph import Graph, Table


class Rows(Protocol):
    """What has the rows of tables: an open graph, or its kept tables."""

    def read(self, table: Table, columns: list[str] | None = None) -> pl.DataFrame:
        """Rows of a table as a frame of its declared columns (or of those named)."""
        ...


class KeptTables:
    """The tables of an open graph that nobody writes; a table that was read stays in memory."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._tables: dict[str, pl.DataFrame] = {}

    def read(self, table: Table, columns: list[str] | None = None) -> pl.DataFrame:
        """Rows of a table as a frame of its declared columns (or of those named)."""
        if table.name not in self._tables:
            self._tables[table.name] = self._graph.read(table)
        kept = self._tables[table.name]
        return kept if columns is None else kept.select(columns)
