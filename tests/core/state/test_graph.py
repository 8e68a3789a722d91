"""The graph holds exactly what was written: `sync` makes tables equal to frames, and changes nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memstate_core.model.graph_tables import EDGES, REVIEWS, REVISIONS, TOPICS, VECTORS
from memstate_core.state import graph as graph_module
from memstate_core.state.graph import (
    EDGE,
    FEW_ROWS,
    FIELD,
    NODE_TABLES,
    REVIEW,
    REVISION,
    TOPIC,
    VECTOR,
    Graph,
    Table,
    open_graph,
)
from memstate_core.state.state_hash import state_hash
from tests.core.state.graphs import TABLES, changed, edges, frame, held, rows_of, topics
from tests.core.strategies import BUFFER_MIB, day

pytestmark = pytest.mark.slow

STRANGE = [
    "a\x00b",
    "\x00",
    "é\u0301 ﬁ 🙂\u200d🙂",
    "\ufeffmark",
    "line\nbreak\t\"quoted\" 'so' \\ $rows",
    "",
    " ",
    "漢字" * 5000,
]


@pytest.fixture(params=[FEW_ROWS, 0], ids=["created", "copied"])
def graph(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Graph]:
    """A graph into which few rows are created, and one into which all are copied."""
    monkeypatch.setattr(graph_module, "FEW_ROWS", request.param)
    with open_graph(tmp_path / "graph", buffer_mib=BUFFER_MIB) as opened:
        yield opened


# A new graph


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_a_new_graph_has_every_table_and_no_rows(graph: Graph, table: Table) -> None:
    found = graph.read(table)
    assert found.is_empty()
    assert found.schema == table.schema


def test_every_node_table_is_tried_here() -> None:
    assert [*NODE_TABLES, EDGE] == TABLES


# sync makes equal


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_sync_inserts_updates_and_deletes(graph: Graph, table: Table) -> None:
    both = rows_of(table)
    if table is EDGE:
        graph.sync(TOPIC, topics("a", "b"))

    inserted = graph.sync(table, both)
    assert (inserted.inserted, inserted.updated, inserted.deleted) == (2, 0, 0)
    assert inserted.topics.to_list() == ["a", "b"]
    assert held(graph, table) == both.sort(table.key).rows()

    other = changed(both, table)
    updated = graph.sync(table, other)
    assert (updated.inserted, updated.updated, updated.deleted) == (0, 1, 0)
    assert updated.topics.to_list() == ["b"]
    assert held(graph, table) == other.sort(table.key).rows()

    deleted = graph.sync(table, other.tail(1))
    assert (deleted.inserted, deleted.updated, deleted.deleted) == (0, 0, 1)
    assert deleted.topics.to_list() == ["a"]
    assert held(graph, table) == other.tail(1).rows()


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_repeating_a_sync_changes_nothing(graph: Graph, table: Table) -> None:
    graph.sync(TOPIC, rows_of(TOPIC))
    graph.sync(table, rows_of(table))
    before = state_hash(graph)
    again = graph.sync(table, rows_of(table).reverse())
    assert (again.inserted, again.updated, again.deleted, again.topics.to_list()) == (0, 0, 0, [])
    assert state_hash(graph) == before


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
words = st.none() | texts
moments = st.none() | st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30)).map(lambda at: at.replace(tzinfo=UTC))  # noqa: DTZ001
topic_rows = st.fixed_dictionaries(
    {
        "title": words,
        "summary": words,
        "salience": st.none() | st.floats(allow_nan=False),
        "archived": st.none() | st.booleans(),
        "created_at": moments,
    }
)
edge_rows = st.fixed_dictionaries(
    {
        "valid_from": moments,
        "evidence_ids": st.none() | st.lists(texts, max_size=3),
    }
)
ids = st.sampled_from(["a", "b", "c", "\x00", "é"])
triples = st.tuples(st.sampled_from("abc"), st.sampled_from("abc"), st.sampled_from(["part_of", "mentions", "\x00"]))
over_one_graph = settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
"""A sync has to work on any earlier content, so all examples share one graph."""


@over_one_graph
@given(st.dictionaries(ids, topic_rows))
def test_whatever_topics_there_were_sync_leaves_the_wanted_ones(graph: Graph, wanted: dict[str, Any]) -> None:
    desired = frame(TOPICS, *({"id": name} | said for name, said in wanted.items()))
    graph.sync(TOPIC, desired)
    assert held(graph, TOPIC) == desired.sort("id").rows()


@over_one_graph
@given(st.dictionaries(triples, edge_rows))
def test_whatever_edges_there_were_sync_leaves_the_wanted_ones(graph: Graph, wanted: dict[Any, Any]) -> None:
    graph.sync(TOPIC, topics("a", "b", "c"))
    rows = [{"from_id": a, "to_id": b, "kind": kind} | said for (a, b, kind), said in wanted.items()]
    desired = frame(EDGES, *rows)
    graph.sync(EDGE, desired)
    assert held(graph, EDGE) == desired.sort(EDGE.key).rows()


@pytest.mark.parametrize("table", NODE_TABLES, ids=lambda table: table.name)
def test_few_rows_and_many_are_read_back_beside_each_other(tmp_path: Path, table: Table) -> None:
    """Also once some of either are deleted, written again, and the file was closed in between."""
    many = pl.concat([rows_of(table).with_columns(id=pl.Series([f"{n}/0", f"{n}/1"])) for n in range(FEW_ROWS)])
    steps = [many[:3], many, many[5:9], many[2:30], many[::2]]
    for desired in steps:
        with open_graph(tmp_path / "graph", buffer_mib=BUFFER_MIB) as graph:
            graph.sync(table, desired)
        with open_graph(tmp_path / "graph", read_only=True, buffer_mib=BUFFER_MIB) as graph:
            assert held(graph, table) == desired.sort(table.key).rows()


# Columns of other steps stay


def test_columns_of_other_steps_stay_where_a_topic_is_updated(graph: Graph) -> None:
    graph.sync(TOPIC, topics("a", "b", title="old"), keep=("salience",))
    graph.update(TOPIC, pl.DataFrame({"id": ["a", "b"], "salience": [3.5, 4.5]}))
    synced = graph.sync(TOPIC, topics("a", "b", "c", title="new"), keep=("salience",))
    assert (synced.inserted, synced.updated) == (1, 2)
    found = graph.read(TOPIC, ["id", "title", "salience"]).sort("id").rows()
    assert found == [("a", "new", 3.5), ("b", "new", 4.5), ("c", "new", None)]


@pytest.mark.parametrize("table", [TOPIC, FIELD], ids=lambda table: table.name)
def test_a_column_of_another_step_is_no_difference(graph: Graph, table: Table) -> None:
    graph.sync(table, rows_of(table), keep=("salience",))
    graph.update(table, rows_of(table).select("id", salience=pl.lit(9.5)))
    assert graph.sync(table, rows_of(table), keep=("salience",)).updated == 0
    assert graph.read(table)["salience"].to_list() == [9.5, 9.5]


def test_a_quiet_column_is_written_and_changes_no_topic(graph: Graph) -> None:
    graph.sync(TOPIC, topics("a", "b", title="old"))
    desired = topics("a", "b", title="old").with_columns(strength=pl.lit(2.5))
    synced = graph.sync(TOPIC, desired, quiet=("strength",))
    assert (synced.updated, synced.topics.to_list()) == (2, [])
    assert graph.read(TOPIC)["strength"].to_list() == [2.5, 2.5]
    renamed = desired.with_columns(title=pl.when(pl.col("id") == "a").then(pl.lit("new")).otherwise("title"))
    assert graph.sync(TOPIC, renamed, quiet=("strength",)).topics.to_list() == ["a"]


def test_a_topic_updated_in_place_keeps_its_edges(graph: Graph) -> None:
    graph.sync(TOPIC, topics("a", "b"))
    graph.sync(EDGE, edges(("a", "b", "part_of")))
    graph.sync(TOPIC, topics("a", "b", title="new"))
    assert held(graph, EDGE) == edges(("a", "b", "part_of")).rows()


def test_an_update_of_nobody_and_a_delete_of_nobody_do_nothing(graph: Graph) -> None:
    graph.sync(TOPIC, topics("a"))
    graph.update(TOPIC, pl.DataFrame({"id": ["ghost"], "title": ["boo"]}))
    graph.delete(TOPIC, pl.DataFrame({"id": ["ghost"]}))
    graph.delete(EDGE, pl.DataFrame({"from_id": ["a"], "to_id": ["ghost"], "kind": ["part_of"]}))
    graph.delete(TOPIC, pl.DataFrame(schema={"id": pl.String}))
    graph.update(TOPIC, pl.DataFrame({"id": ["a"]}))
    assert held(graph, TOPIC) == topics("a").rows()


# Values survive


@pytest.mark.parametrize("text", STRANGE, ids=range(len(STRANGE)))
def test_strange_text_survives_in_ids_columns_and_lists(graph: Graph, text: str) -> None:
    id_ = f"id {text[:100]}"
    for said in ({"title": text, "summary": None}, {"title": "plain", "summary": text}):
        graph.sync(TOPIC, topics(id_, "b", **said))
        assert held(graph, TOPIC) == topics(id_, "b", **said).sort("id").rows()
    linked = edges((id_, "b", f"kind {text[:100]}"), evidence_ids=["e1", text])
    graph.sync(EDGE, linked)
    assert held(graph, EDGE) == linked.rows()
    revision = frame(REVISIONS, {"id": "r", "value_json": text, "evidence_ids": [text, "e"]})
    graph.sync(REVISION, revision)
    assert held(graph, REVISION) == revision.rows()
    assert graph.read(TOPIC, ["id"], "r.id = $id", id=id_)["id"].to_list() == [id_]


def test_an_id_is_not_cut_at_a_nul(graph: Graph) -> None:
    graph.sync(TOPIC, topics("a", "a\x00b"))
    graph.update(TOPIC, pl.DataFrame({"id": ["a\x00b"], "title": ["mine"]}))
    assert dict(graph.read(TOPIC, ["id", "title"]).iter_rows()) == {"a": None, "a\x00b": "mine"}


def test_a_value_becomes_null_and_a_value_again(graph: Graph) -> None:
    for said in ({"summary": "x", "merged_into": "y"}, {}, {"summary": "x", "created_at": day(2)}):
        graph.sync(TOPIC, topics("a", **said))
        assert held(graph, TOPIC) == topics("a", **said).rows()


def test_moments_keep_their_microseconds_and_vectors_their_bits(graph: Graph) -> None:
    moment = datetime(2026, 1, 2, 3, 4, 5, 678_901, tzinfo=UTC)
    review = frame(REVIEWS, {"id": "r", "queued_at": moment, "hops": 2**40})
    graph.sync(REVIEW, review)
    assert held(graph, REVIEW) == review.rows()
    numbers = pl.Series([[(n + 1) / 3 for n in range(384)]], dtype=VECTORS["embedding"])
    vector = frame(VECTORS, {"id": "v"}).with_columns(embedding=numbers)
    graph.sync(VECTOR, vector)
    assert graph.read(VECTOR)["embedding"].to_numpy().tobytes() == numbers.to_numpy().tobytes()


# Edges


def test_one_of_two_edges_between_the_same_topics_is_deleted(graph: Graph) -> None:
    graph.sync(TOPIC, topics("a", "b"))
    graph.sync(EDGE, edges(("a", "b", "part_of"), ("a", "b", "mentions"), ("b", "a", "part_of")))
    graph.delete(EDGE, edges(("a", "b", "part_of")).select(EDGE.key))
    left = edges(("a", "b", "mentions"), ("b", "a", "part_of"))
    assert held(graph, EDGE) == left.rows()


def test_an_edge_is_replaced_and_its_neighbours_stay(graph: Graph) -> None:
    graph.sync(TOPIC, topics("a", "b"))
    kept = edges(("a", "b", "mentions"), evidence_ids=["e1"])
    graph.sync(EDGE, pl.concat([kept, edges(("a", "b", "part_of"), evidence_ids=["e1"])]))
    longer = edges(("a", "b", "part_of"), evidence_ids=["e1", "e2"], valid_until=day(4))
    assert graph.sync(EDGE, pl.concat([longer, kept])).updated == 1
    assert held(graph, EDGE) == pl.concat([kept, longer]).rows()


def test_edges_that_cannot_be_written_leave_the_earlier_ones(tmp_path: Path) -> None:
    path = tmp_path / "graph.kuzu"
    with open_graph(path, buffer_mib=BUFFER_MIB) as graph:
        graph.sync(TOPIC, topics("a", "b"))
        graph.sync(EDGE, rows_of(EDGE))
        before = held(graph, EDGE)
        assert before
    with pytest.raises(RuntimeError, match="nobody"), open_graph(path, buffer_mib=BUFFER_MIB) as graph:
        graph.sync(EDGE, rows_of(EDGE).with_columns(to_id=pl.lit("nobody")))
    with open_graph(path, buffer_mib=BUFFER_MIB) as graph:
        assert held(graph, EDGE) == before
        graph.sync(EDGE, rows_of(EDGE).head(1))
        assert len(held(graph, EDGE)) == 1


def test_a_topic_goes_with_its_edges_and_with_no_others(graph: Graph) -> None:
    graph.sync(TOPIC, topics("a", "b", "c"))
    graph.sync(EDGE, edges(("a", "b", "part_of"), ("b", "c", "part_of"), ("c", "a", "part_of")))
    graph.sync(TOPIC, topics("a", "c"))
    assert held(graph, EDGE) == edges(("c", "a", "part_of")).rows()


def test_edges_are_read_by_a_condition_on_their_ends(graph: Graph) -> None:
    graph.sync(TOPIC, topics("a", "b", "c"))
    graph.sync(EDGE, edges(("a", "b", "part_of"), ("b", "c", "part_of")))
    found = graph.read(EDGE, ["to_id"], "a.id IN $ids AND b.state = 'active'", ids=["b"])
    assert found["to_id"].to_list() == ["c"]


# The state hash


@pytest.mark.parametrize(
    ("name", "value"), [("created_at", day(1)), ("updated_at", day(1)), ("strength", 2.0), ("reinforced_at", day(1))]
)
def test_the_state_hash_leaves_out_what_may_differ_between_equal_histories(graph: Graph, name: str, value: Any) -> None:
    graph.sync(TOPIC, topics("a"))
    before = state_hash(graph)
    graph.sync(TOPIC, topics("a", **{name: value}))
    assert state_hash(graph) == before


def test_the_state_hash_distinguishes_zero_confidence_from_none(graph: Graph) -> None:
    hashes = set()
    for confidence in (None, 0.0):
        graph.sync(REVISION, frame(REVISIONS, {"id": "r", "confidence": confidence}))
        hashes.add(state_hash(graph))
    assert len(hashes) == 2
