"""The index files: the same bytes for the same input, no more than is served, and in step with the graph."""

from __future__ import annotations

import random

import numpy as np
import polars as pl
import pytest

from memstate_core.retrieve.index.write import index_problems, write_index
from memstate_core.retrieve.reader import SnapshotReader
from memstate_core.state.graph import TOPIC, open_graph
from memstate_core.state.snapshots import file_digests
from tests.core.retrieve.conftest import Store


def filled() -> Store:
    store = Store()
    for scope in ("user:a", "user:b"):
        for n in range(4):
            topic = f"{scope}-{n}"
            store.topic(
                topic, scope, title=f"Topic {n}", summary="About things", state="archived" if n == 3 else "active"
            )
            store.talk(topic, f"{scope}/{n}", ("Ann", "Where is it?"), ("Bob", f"In room {n}."), scope=scope, on=n)
    store.says("user:a-0", "owner: Ann", embed=False)
    return store


def test_the_same_input_gives_the_same_bytes(tmp_path):
    frames = filled().frames()
    digests = []
    for name, seed in (("one", 1), ("two", 2)):
        (tmp_path / name).mkdir()
        order = random.Random(seed).sample(range(frames["topics"].height), frames["topics"].height)
        write_index(tmp_path / name, **frames | {"topics": frames["topics"][order]})
        digests.append(file_digests(tmp_path / name))
    assert digests[0] == digests[1]
    assert len(digests[0]) == 15


def test_facts_have_the_same_bytes_in_any_order_of_input(tmp_path):
    digests = []
    for seed in (1, 2):
        store = filled()
        for n in range(3):
            store.field(f"user:a-{n}", "owner", (2, "Aya"), (1, "Priya"))
            store.edge(f"user:a-{n}", f"user:b-{n}")
        for rows in (store.fields, store.revisions, store.edges, store.topics):
            random.Random(seed).shuffle(rows)
        folder = store.publish(tmp_path / str(seed)).path / "facts"
        digests.append(file_digests(folder))
    assert digests[0] == digests[1]
    assert sorted(digests[0]) == ["edges.parquet", "fields.parquet", "places.parquet", "reviews.parquet",
                                  "revisions.parquet", "superseded.parquet"]  # fmt: skip


def test_only_active_topics_are_listed_by_scope_and_id(tmp_path):
    snapshot = filled().publish(tmp_path / "s0")
    topics = pl.read_parquet(snapshot.path / "topics.parquet")
    assert topics.select("scope", "id").rows() == sorted(
        (s, f"{s}-{n}") for s in ("user:a", "user:b") for n in range(3)
    )
    assert np.load(snapshot.path / "topic_vectors.npy").shape == (6, 384)


def test_a_reader_gets_the_rows_of_one_scope(opened):
    [reader] = opened(filled())
    assert reader.scopes == ["user:a", "user:b"]
    evidence = reader.evidence("user:b")
    assert evidence.frame["scope"].unique().to_list() == ["user:b"]
    assert evidence.vectors.shape == (8, 384)
    assert evidence.windows.shape == (8, 3)
    assert reader.evidence("user:a").vector_rows.tolist().count(-1) == 1
    assert reader.evidence("user:z").frame.height == reader.topics("user:z").frame.height == 0


def test_opening_does_not_open_the_graph(tmp_path):
    snapshot = filled().publish(tmp_path / "s0")
    (snapshot.path / "graph.kuzu").write_bytes(b"KUZU, but no graph")
    with SnapshotReader(snapshot) as reader:
        assert reader.topics("user:a").frame.height == 3


def test_a_sound_index_has_no_problems(tmp_path):
    assert problems(filled().publish(tmp_path / "s0").path) == []
    assert problems(Store().publish(tmp_path / "empty").path) == []


def problems(folder):
    with open_graph(folder / "graph.kuzu", read_only=True, buffer_mib=256) as graph:
        return index_problems(folder, graph)


def shorter(path):
    rows = np.load(path)[:-1]
    np.save(path, rows)


def changed(path):
    rows = np.load(path)
    rows[2] = -rows[2]
    np.save(path, rows)


def reversed_rows(path):
    pl.read_parquet(path).reverse().write_parquet(path)


@pytest.mark.parametrize(
    ("name", "damage", "said"),
    [
        ("topics.parquet", reversed_rows, "the order differs"),
        ("topic_vectors.npy", shorter, "topic_vectors.npy has 5 rows, topics.parquet has 6"),
        ("topic_vectors.npy", changed, "differs from the graph in 1 row, first user:a-2"),
        ("evidence.parquet", reversed_rows, "evidence.parquet is not sorted"),
        ("evidence_vectors.npy", shorter, "evidence_vectors.npy lacks 1 row, first that of o0015"),
        ("windows.npy", shorter, "windows.npy has 16 rows, evidence.parquet has 17"),
    ],
)
def test_each_kind_of_damage_is_named(tmp_path, name, damage, said):
    folder = filled().publish(tmp_path / "s0").path
    damage(folder / name)
    [problem] = problems(folder)
    assert said in problem


def test_facts_that_differ_from_the_graph_are_named(tmp_path):
    store = filled()
    for n in range(2):
        store.field(f"user:a-{n}", "owner", (2, "Aya"), (1, "Priya"))
    folder = store.publish(tmp_path / "s0").path
    assert problems(folder) == []
    rows = pl.read_parquet(folder / "facts" / "revisions.parquet")
    assert rows["value_json"].to_list() == ['"Aya"', '"Aya"']
    reversed_rows(folder / "facts" / "revisions.parquet")
    assert problems(folder) == ["facts/revisions.parquet differs from the graph"]


def test_a_graph_that_moved_on_is_noticed(tmp_path):
    folder = filled().publish(tmp_path / "s0").path
    with open_graph(folder / "graph.kuzu", buffer_mib=256) as graph:
        graph.delete(TOPIC, pl.DataFrame({"id": ["user:b-1"]}))
    assert [problem.split(";")[0] for problem in problems(folder)] == [
        "topics.parquet lists 6 topics, the graph serves 5",
        "evidence.parquet names 1 topic that the graph lacks, first user:b-1",
    ]
