"""The current facts of served topics in files by scope, so that a query reads those of its scopes only.

Kuzu finds the rows of a few topics by a table scan: 45 ms a question at 100,000 revisions, for any scope. These files
hold the same current rows; histories and the past stay in the graph.

Detached fields and edges are left out.

    facts/fields.parquet, revisions.parquet (current values and those in conflict with them), reviews.parquet,
    edges.parquet (in the scope where they start), and facts/places.parquet: the rows of each scope
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from memstate_core.retrieve.conflicts import open_rivals
from memstate_core.retrieve.index.layout import SERVED_STATE, place_scopes, scope_layout, write_rows
from memstate_core.state.graph import EDGE, FIELD, REVIEW, REVISION, TOPIC, Graph, Table

FOLDER = "facts"
CURRENT = "r.rank = 0 AND r.part = 'field'"
"""The revisions that a default query may return (C1)."""

TABLES: dict[str, Table] = {"fields": FIELD, "revisions": REVISION, "reviews": REVIEW, "edges": EDGE}


def write_facts(folder: Path, graph: Graph) -> None:
    """Writes the current facts of a snapshot beside its index.

    Args:
        folder: the snapshot's folder.
        graph: its graph, complete.
    """
    (folder / FOLDER).mkdir()
    layouts = {}
    for name, rows in current_facts(graph).items():
        write_rows(rows, folder / FOLDER / f"{name}.parquet")
        layouts[name] = scope_layout(rows)
    write_rows(place_scopes(layouts), folder / FOLDER / "places.parquet")


def current_facts(graph: Graph) -> dict[str, pl.DataFrame]:
    """The rows of each file: the columns of its table and `scope`, sorted by scope, topic and key."""
    owners = graph.read(TOPIC, ["id", "scope"], f"r.state = '{SERVED_STATE}'").rename({"id": "owner"})
    fields, edges = graph.read(FIELD), graph.read(EDGE)
    off = fields.filter("detached").select("topic_id", "name")
    attached = {
        "fields": fields.filter(~pl.col("detached")),
        "revisions": current_revisions(graph).join(off, on=["topic_id", "name"], how="anti"),
        "reviews": graph.read(REVIEW),
        "edges": edges.filter(~pl.col("detached")),
    }
    facts = {}
    for name, rows in attached.items():
        owner, key = TABLES[name].owner, TABLES[name].key
        facts[name] = rows.join(owners, left_on=owner, right_on="owner").sort("scope", owner, *key)
    return facts


def current_revisions(graph: Graph, where: str = "", **given: Any) -> pl.DataFrame:
    """The current revisions of fields, and those in open conflict with them (columns REVISIONS).

    Args:
        graph: an open graph.
        where: a further condition over `r`, for the current ones.
        given: the values of its `$parameters`.
    """
    current = graph.read(REVISION, where=f"{where} AND {CURRENT}" if where else CURRENT, **given)
    rivals = open_rivals(current)["rival"].to_list()
    if not rivals:
        return current
    return pl.concat([current, graph.read(REVISION, where="r.id IN $rivals", rivals=rivals)])


def fact_problems(folder: Path, graph: Graph) -> list[str]:
    """Differences between the files and the graph; empty if there are none or the files were not written."""
    if not (folder / FOLDER).exists():
        return []
    return [
        f"{FOLDER}/{name}.parquet differs from the graph"
        for name, rows in current_facts(graph).items()
        if not pl.read_parquet(folder / FOLDER / f"{name}.parquet", glob=False).equals(rows)
    ]
