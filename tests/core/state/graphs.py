"""Rows for the tables of a graph, and what a table has."""

from __future__ import annotations

from typing import Any

import polars as pl

from memstate_core.model.frames import Schema
from memstate_core.model.graph_tables import EDGES, TOPICS, VECTORS
from memstate_core.state.graph import EDGE, FIELD, REVIEW, REVISION, TOPIC, VECTOR, Graph, Table
from tests.core.strategies import day

TABLES = [TOPIC, FIELD, REVISION, VECTOR, REVIEW, EDGE]


def frame(schema: Schema, *rows: dict[str, Any]) -> pl.DataFrame:
    return pl.DataFrame([dict.fromkeys(schema) | row for row in rows], schema=schema)


def topics(*ids: str, **said: Any) -> pl.DataFrame:
    return frame(TOPICS, *({"id": name, "scope": "user:aya", "state": "active"} | said for name in ids))


def edges(*triples: tuple[str, str, str], **said: Any) -> pl.DataFrame:
    return frame(EDGES, *({"from_id": a, "to_id": b, "kind": kind} | said for a, b, kind in triples))


def rows_of(table: Table) -> pl.DataFrame:
    """Two rows of a table, whose topics are `a` and `b`, with something in every kind of column."""
    if table is EDGE:
        return edges(("a", "b", "part_of"), ("b", "a", "part_of"), evidence_ids=["e1"], valid_from=day(1))
    if table is TOPIC:
        return topics("a", "b", title="T", salience=1.5, archived=False, created_at=day(1))
    owned = frame(table.schema, *({"id": f"{name}-row", table.owner: name} for name in "ab"))
    if table is VECTOR:
        embedding = pl.Series([[0.1] * 384, [0.2] * 384], dtype=VECTORS["embedding"])
        return owned.with_columns(id=pl.Series(["a", "b"]), embedding=embedding)
    return owned


def held(graph: Graph, table: Table) -> list[tuple[Any, ...]]:
    return graph.read(table).sort(table.key).rows()


def changed(rows: pl.DataFrame, table: Table) -> pl.DataFrame:
    """The second row with another value in a column that is not a key."""
    columns = {"Topic": "title", "Vector": "text_hash", "Related": "valid_until", "Revision": "value_json"}
    name = columns.get(table.name, "ref_state" if table is FIELD else "reason")
    value = pl.lit(day(3)) if name == "valid_until" else pl.lit("another")
    return pl.concat([rows.head(1), rows.tail(1).with_columns(value.cast(rows.schema[name]).alias(name))])
