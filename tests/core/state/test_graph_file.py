"""The file of a graph: one, that reads back; many may be open; vectors of one dimension; the hash of all parts."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import polars as pl
import pytest

from memstate_core.model.errors import DimensionMismatch
from memstate_core.model.graph_tables import VECTORS, vector_columns
from memstate_core.state.graph import EDGE, FIELD, REVISION, TOPIC, VECTOR, leftovers, open_graph
from memstate_core.state.state_hash import state_hash
from tests.core.frames import filled
from tests.core.state.graphs import TABLES, changed, frame, rows_of, topics
from tests.core.strategies import BUFFER_MIB

pytestmark = pytest.mark.slow


def test_a_closed_graph_is_one_file_that_reads_back(tmp_path: Path) -> None:
    path = tmp_path / "graph"
    with open_graph(path, buffer_mib=BUFFER_MIB) as graph:
        for table in TABLES:
            graph.sync(table, rows_of(table))
        written = state_hash(graph)
    assert leftovers(path) == []
    assert [entry.name for entry in tmp_path.iterdir()] == ["graph"]
    with open_graph(path, read_only=True, buffer_mib=BUFFER_MIB) as graph:
        assert state_hash(graph) == written
        with pytest.raises(RuntimeError, match="read-only"):
            graph.insert(TOPIC, topics("c"))


def test_a_process_may_hold_many_published_graphs_open(tmp_path: Path) -> None:
    with open_graph(tmp_path / "graph.kuzu", buffer_mib=BUFFER_MIB) as graph:
        graph.sync(TOPIC, filled(pl.DataFrame({"id": ["a"]}), TOPIC.schema))
    with ExitStack() as held:
        opened = [
            held.enter_context(open_graph(tmp_path / "graph.kuzu", read_only=True, buffer_mib=8)) for _ in range(40)
        ]
        assert [each.read(TOPIC, ["id"])["id"].to_list() for each in opened] == [["a"]] * 40


def test_the_state_hash_sees_every_part(tmp_path: Path) -> None:
    """One change in each of topics, fields, revisions and edges gives another hash, and so five hashes."""
    hashes = set()
    with open_graph(tmp_path / "graph", buffer_mib=BUFFER_MIB) as graph:
        for table in (TOPIC, FIELD, REVISION, EDGE):
            graph.sync(table, rows_of(table))
        hashes.add(state_hash(graph))
        for table in (TOPIC, FIELD, REVISION, EDGE):
            graph.sync(table, changed(rows_of(table), table))
            hashes.add(state_hash(graph))
    assert len(hashes) == 5


def test_a_graph_without_vectors_takes_those_of_any_dimension_and_no_others_then(tmp_path: Path) -> None:
    def vector(name: str, dimension: int) -> pl.DataFrame:
        columns = vector_columns(dimension)
        rows = frame(VECTORS, {"id": name, "model": "tiny"}).drop("embedding")
        return rows.with_columns(embedding=pl.Series([[0.5] * dimension], dtype=columns["embedding"]))

    with open_graph(tmp_path / "g.kuzu", buffer_mib=256) as graph:
        graph.insert(VECTOR, vector("a", 384))
        with pytest.raises(DimensionMismatch, match="96 dimensions, expected 384 as in the graph"):
            graph.insert(VECTOR, vector("b", 96))
        graph.delete(VECTOR, pl.DataFrame({"id": ["a"]}))
        graph.insert(VECTOR, vector("b", 96))
        graph.insert(VECTOR, vector("c", 96))
    with open_graph(tmp_path / "g.kuzu", read_only=True, buffer_mib=256) as graph:
        kept = graph.read(VECTOR).sort("id")
    assert (kept["embedding"].to_numpy().shape[1], kept["id"].to_list()) == (96, ["b", "c"])
    assert kept["embedding"].to_list() == [[0.5] * 96] * 2
