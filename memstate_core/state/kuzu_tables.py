"""Tables of the graph in Kuzu's terms: the statements that create them, and frames as Kuzu takes and gives them."""

from __future__ import annotations

from typing import Any

import polars as pl

from memstate_core.model.frames import Schema, conform
from memstate_core.model.graph_tables import EDGES

EDGE_TABLE = "Related"


def node_table(name: str, schema: Schema) -> str:
    """The statement that creates a table of nodes, with an `id` among its columns."""
    return f"CREATE NODE TABLE {name}({_columns(schema)}, PRIMARY KEY(id))"


def creation(name: str, columns: list[str]) -> str:
    """The statement that creates the nodes of `$rows`."""
    aliases = ", ".join(f"{column} AS _{column}" for column in columns)
    values = ", ".join(f"{column}: _{column}" for column in columns)
    return f"LOAD FROM $rows WITH {aliases} CREATE (:{name} {{{values}}})"


def edge_table() -> str:
    """The statement that creates the table of edges."""
    properties = {name: dtype for name, dtype in EDGES.items() if name not in ("from_id", "to_id")}
    return f"CREATE REL TABLE {EDGE_TABLE}(FROM Topic TO Topic, {_columns(properties)})"


def _columns(schema: Schema) -> str:
    return ", ".join(f"{name} {_kuzu_type(dtype)}" for name, dtype in schema.items())


def _kuzu_type(dtype: Any) -> str:
    if isinstance(dtype, pl.Array):
        return f"FLOAT[{dtype.size}]"
    if isinstance(dtype, pl.List):
        return "STRING[]"
    if isinstance(dtype, pl.Datetime):
        return "TIMESTAMP"
    return {pl.String: "STRING", pl.Float64: "DOUBLE", pl.Int64: "INT64", pl.Boolean: "BOOL"}[dtype]


def to_kuzu(frame: pl.DataFrame) -> Any:
    """A frame as an Arrow table that Kuzu reads; it knows moments in UTC without their zone alone."""
    moments = [name for name, dtype in frame.schema.items() if isinstance(dtype, pl.Datetime)]
    return frame.with_columns(pl.col(moments).dt.replace_time_zone(None)).to_arrow()


def from_kuzu(table: Any, schema: Schema) -> pl.DataFrame:
    """The rows of an Arrow table that Kuzu gave, with the columns of a schema."""
    frame: Any = pl.from_arrow(table)
    moments = [name for name, dtype in schema.items() if isinstance(dtype, pl.Datetime)]
    zoned = frame.with_columns(pl.col(moments).dt.replace_time_zone("UTC")) if moments else frame
    return conform(zoned, schema)
