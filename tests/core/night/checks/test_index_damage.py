"""Wrong content under right digests, in the files that queries read beside the graph: `verify` names the file."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl
import pytest

from memstate_core.embed.matrix import matrix
from memstate_core.embed.vector_cache import embed
from memstate_core.model.evidence import spoken
from memstate_core.model.text import embedding_text
from memstate_core.night.rebuild import rebuild
from memstate_core.night.verify import verify_store
from memstate_core.retrieve.index.bm25 import POSTING_FILES
from memstate_core.run.run import GRAPH_FILE
from memstate_core.run.store import open_store
from memstate_core.state.graph import TOPIC, VECTOR, open_graph
from tests.core.night.checks.damage import BUFFER_MIB, Home
from tests.core.night.checks.test_file_damage import failed

pytestmark = pytest.mark.slow
Change = Callable[[pl.DataFrame], pl.DataFrame]
PARITY, REBUILD = "index parity", "index rebuild"


def reversed_columns(*names: str) -> Change:
    return lambda rows: rows.with_columns(pl.col(names).reverse())


def other(name: str) -> Change:
    """Another text in one row."""
    row = pl.int_range(pl.len()) == 1
    return lambda rows: rows.with_columns(pl.when(row).then(pl.lit("x")).otherwise(name).alias(name))


TABLES: dict[str, tuple[str, Change, dict[str, str]]] = {
    "titles and summaries of other topics": (
        "topics.parquet", reversed_columns("title", "summary"), {PARITY: "differs from the graph in title, summary of"},
    ),
    "salience of other topics": (
        "topics.parquet", reversed_columns("salience"), {PARITY: "differs from the graph in salience of"},
    ),
    "texts of other evidence": (
        "evidence.parquet", reversed_columns("text"), {REBUILD: "evidence.parquet differs from the ledger in text of"},
    ),
    **{
        f"another {name}": (
            "evidence.parquet", other(name), {REBUILD: f"evidence.parquet differs from the ledger in {name} of 1 row"},
        )
        for name in ("observation_id", "actor", "session_id", "kind")
    },
    "no scope is placed": (
        "scopes.parquet", lambda rows: rows.clear(), {PARITY: "scopes.parquet differs", REBUILD: "scopes.parquet"},
    ),
    "a scope is missing": (
        "scopes.parquet", lambda rows: rows.tail(-1), {PARITY: "scopes.parquet differs", REBUILD: "scopes.parquet"},
    ),
    "terms lie elsewhere": (
        "scopes.parquet", lambda rows: rows.with_columns(pl.col("topic_term_count") - 1),
        {REBUILD: "scopes.parquet differs from an index made of the ledger"},
    ),
    "a scope of facts is missing": (
        "facts/places.parquet", lambda rows: rows.tail(-1), {PARITY: "facts/places.parquet differs from the rows"},
    ),
    "an alias is doubled": (
        "aliases.parquet", lambda rows: pl.concat([rows, rows.head(1)]), {REBUILD: "aliases.parquet differs"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("damage", TABLES)
def test_wrong_rows_under_right_digests_are_named(home: Home, damage: str) -> None:
    file, how, expected = TABLES[damage]
    home.file(file, how)
    found = failed(home)
    assert found.keys() == expected.keys(), found
    assert all(part in found[check] for check, part in expected.items()), found


@pytest.mark.parametrize("file", ["fields", "revisions", "edges", "reviews", "superseded"])
@pytest.mark.parametrize(
    "how",
    [lambda rows: rows.tail(-1), lambda rows: rows.reverse(), lambda rows: pl.concat([rows, rows.tail(1)])],
    ids=["one is missing", "another order", "one is doubled"],
)
def test_wrong_facts_under_right_digests_are_named(home: Home, file: str, how: Change) -> None:
    home.file(f"facts/{file}.parquet", how)
    assert failed(home) == {PARITY: f"facts/{file}.parquet differs from the graph"}


def test_a_rebuild_mends_wrong_content(home: Home) -> None:
    home.file("evidence.parquet", reversed_columns("text"))
    home.file("topics.parquet", reversed_columns("title"))
    assert failed(home).keys() == {PARITY, REBUILD}
    rebuild(home.store, "s0", "rebuild-1")
    assert failed(home) == {}


ARRAYS = {
    "windows.npy": 1,
    "window_lengths.npy": 0.5,
    **{f"lexical/{of}/{file}": 1 for of in ("evidence", "topics") for file in POSTING_FILES},
}


def test_wrong_arrays_under_right_digests_are_named(home: Home) -> None:
    """Each in turn; the original is restored before the next."""
    for name, added in ARRAYS.items():
        path = home.served / name
        sound = path.read_bytes()
        array = np.load(path)
        array[len(array) // 2 :] += np.asarray(added).astype(array.dtype)
        np.save(path, array)
        home.seal()
        assert failed(home) == {REBUILD: f"{name} differs from an index made of the ledger"}, name
        path.write_bytes(sound)
    home.seal()
    assert failed(home) == {}


def test_vectors_of_other_turns_are_named_where_the_cache_knows_them(home: Home) -> None:
    path = home.served / "evidence_vectors.npy"
    turns = pl.read_parquet(home.served / "evidence.parquet").filter(pl.col("vector_row").is_not_null())
    embed(home.store.home.cache, home.store.encoder, turns.select(spoken()).to_series().to_list())
    assert failed(home) == {}
    np.save(path, -np.load(path))
    home.seal()
    odd = f"evidence_vectors.npy differs from the embedding cache in {turns.height} rows, first 0"
    assert failed(home) == {REBUILD: odd}
    np.save(path, np.load(path)[:-1])
    home.seal()
    assert failed(home).keys() == {PARITY, REBUILD}


def test_vectors_of_other_topics_are_named_where_the_cache_knows_them(home: Home) -> None:
    """Graph and index have the same wrong vectors, so only the texts show it; the one in the middle stays."""
    path = home.served / "topic_vectors.npy"
    with open_graph(home.served / GRAPH_FILE, read_only=True, buffer_mib=BUFFER_MIB) as graph:
        topics, vectors = graph.read(TOPIC), graph.read(VECTOR).sort("id")
    texts = vectors.join(topics, on="id", maintain_order="left").select(
        embedding_text(pl.col("title"), pl.col("summary"))
    )
    embed(home.store.home.cache, home.store.encoder, texts.to_series().to_list())
    assert failed(home) == {}
    swapped = vectors.with_columns(pl.col("embedding").reverse())
    served = pl.read_parquet(home.served / "topics.parquet").select("id").join(swapped, on="id", maintain_order="left")
    np.save(path, matrix(served["embedding"]))
    home.graph(lambda graph: graph.update(VECTOR, swapped.select("id", "embedding")))
    rows = f"{vectors.height // 2 * 2} rows, first {vectors['id'][0]}"
    odd = f"the graph's table Vector differs from the embedding cache in {rows}"
    assert failed(home) == {REBUILD: odd}
    rebuild(home.store, "s0", "rebuild-1")
    assert failed(home) == {}


def test_what_another_version_made_is_not_compared_and_verify_says_so(home: Home) -> None:
    home.manifest(lambda manifest: {**manifest, "made_by": "1.2.3"})
    home.file("evidence.parquet", reversed_columns("text"))
    (verdicts,) = verify_store(open_store(home.store.home.root, {})).values()
    (verdict,) = [each for each in verdicts if each.name == REBUILD]
    assert verdict.passed
    assert verdict.detail.startswith("not compared, since 1.2.3 made it and this is ")
