"""The current facts of served topics in files by scope, so that a query reads those of its scopes only.

Kuzu finds the rows of a few topics by a table scan: 45 ms a question at 100,000 revisions, for any scope. These files
hold the same current rows; histories and the past stay in the graph.

Detached fields and edges are left out.

    facts/fields.parquet, revisions.parquet (current values and those in conflict with them), reviews.parquet,
    edges.parquet (in the scope where they start), superseded.parquet (evidence of earlier values only), and
    facts/places.parquet: the rows of each scope
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from memstate_core.retrieve.facts.conflicts import open_rivals
from memstate_core.retrieve.index.layout import SERVED_STATE, place_scopes, scope_layout, write_rows
from memstate_core.retrieve.superseded import SUPERSEDED, superseded_evidence
from memstate_core.state.graph import EDGE, FIELD, REVIEW, REVISION, TOPIC, Graph, Table
from memstate_core.state.kept_tables import Rows

FOLDER = "facts"
CURRENT = "r.rank = 0 AND r.part = 'field'"
"""The revisions that a default query may return (C1)."""

TABLES: dict[str, Table] = {"fields": FIELD, "revisions": REVISION, "reviews": REVIEW, "edges": EDGE}
SUPERSEDED_FILE = f"{FOLDER}/superseded.parquet"
"""Columns scope and SUPERSEDED; snapshots made by earlier versions lack it."""


def write_facts(folder: Path, graph: Rows) -> None:
    """Writes the current facts of a snapshot beside its index.

    Args:
        folder: the snapshot's folder.
        graph: its graph, complete.
    """
    (folder / FOLDER).mkdir()
    layouts = {}
    for name, rows in served_facts(graph).items():
        write_rows(rows, folder / FOLDER / f"{name}.parquet")
        layouts[name] = scope_layout(rows)
    write_rows(place_scopes(layouts), folder / FOLDER / "places.parquet")


def served_facts(graph: Rows) -> dict[str, pl.DataFrame]:
    """The rows of each file: the columns of its table and `scope`, sorted by scope, topic and key."""
    topics = graph.read(TOPIC, ["id", "scope", "state"]).filter(pl.col("state") == SERVED_STATE)
    owners = topics.select("scope", owner="id")
    fields, edges, revisions = graph.read(FIELD), graph.read(EDGE), graph.read(REVISION)
    off = fields.filter("detached").select("topic_id", "name")
    earlier = superseded_evidence(revisions)
    attached = {
        "fields": fields.filter(~pl.col("detached")),
        "revisions": _current(revisions).join(off, on=["topic_id", "name"], how="anti"),
        "reviews": graph.read(REVIEW),
        "edges": edges.filter(~pl.col("detached")),
        "superseded": earlier.join(off, on=["topic_id", "name"], how="anti"),
    }
    orders = {name: (table.owner, *table.key) for name, table in TABLES.items()} | {"superseded": tuple(SUPERSEDED)}
    return {
        name: rows.join(owners, left_on=orders[name][0], right_on="owner").sort("scope", *orders[name])
        for name, rows in attached.items()
    }


def _current(revisions: pl.DataFrame) -> pl.DataFrame:
    """Of all revisions the current ones of fields, and those in open conflict with them."""
    current = revisions.filter((pl.col("rank") == 0) & (pl.col("part") == "field"))
    return pl.concat([current, revisions.filter(pl.col("id").is_in(open_rivals(current)["rival"].implode()))])


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


def fact_problems(folder: Path, graph: Rows) -> list[str]:
    """Differences between the files and the graph; empty if there are none or the files were not written."""
    if not (folder / FOLDER).exists():
        return []
    places = pl.read_parquet(folder / FOLDER / "places.parquet", glob=False)
    written = {name: rows for name, rows in served_facts(graph).items() if f"{name}_first" in places.columns}
    problems = [
        f"{FOLDER}/{name}.parquet differs from the graph"
        for name, rows in written.items()
        if not pl.read_parquet(folder / FOLDER / f"{name}.parquet", glob=False).equals(rows)
    ]
    if not places.equals(place_scopes({name: scope_layout(rows) for name, rows in written.items()})):
        problems.append(f"{FOLDER}/places.parquet differs from the rows of the facts")
    return problems
