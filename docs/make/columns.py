"""The columns of the tables of the ledger and of the graph, with their types and meanings."""

from __future__ import annotations

from functools import partial
from typing import Any

import polars as pl

from docs.make.markdown import code, paragraphs, table
from memstate_core.model.column_meanings import GRAPH, LEDGER
from memstate_core.state.graph import EDGE, NODE_TABLES
from memstate_core.state.ledger.ledger import TABLES


def ledger_columns(name: str) -> str:
    """The columns of a table of the ledger."""
    return _columns(TABLES[name], LEDGER[name])


def graph_columns() -> str:
    """The columns of the tables of the graph, below a heading for each."""
    tables = (*NODE_TABLES, EDGE)
    return paragraphs(*(f"### {each.name}\n\n{_columns(each.schema, GRAPH[each.name])}" for each in tables))


PARTS = {f"columns of {name}": partial(ledger_columns, name) for name in LEDGER} | {
    "columns of the graph": graph_columns
}
"""What pages name, and what makes it."""


def _columns(schema: Any, meanings: Any) -> str:
    rows = [(code(name), _type_name(dtype), meanings[name]) for name, dtype in schema.items()]
    return table(("Column", "Type", "Meaning"), rows)


def _type_name(dtype: Any) -> str:
    if isinstance(dtype, pl.List):
        inner = dtype.inner
        return f"List({'Struct' if isinstance(inner, pl.Struct) else inner})"
    return str(dtype.base_type())
