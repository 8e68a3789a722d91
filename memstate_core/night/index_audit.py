"""Compares the files that queries read beside the graph with those that the ledger gives, whatever their digests say.

Files may be wrong under right digests: a snapshot takes over from the one before it what did not change, so damage that
was published once would stay. Vectors are compared with the embedding cache as far as it has them; no model is asked.

Invariant: a served index is the one that a whole build writes, to the last bit; floats of vectors, which other
processors round otherwise, are compared by a bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

from memstate_core.embed.encoder import Vectors
from memstate_core.embed.matrix import matrix
from memstate_core.embed.vector_cache import cached
from memstate_core.model.quantity import quantity
from memstate_core.model.step_frames import ALIASES
from memstate_core.model.text import embedding_text
from memstate_core.retrieve.index.bm25 import POSTING_FILES
from memstate_core.retrieve.index.evidence import evidence_rows
from memstate_core.retrieve.index.kept_scopes import SCOPES_FILE
from memstate_core.retrieve.index.layout import read_array
from memstate_core.retrieve.index.write import (
    EVIDENCE_TERMS,
    TOPIC_TERMS,
    differing_columns,
    write_evidence_index,
    write_topic_index,
)
from memstate_core.run.run import GRAPH_FILE, Run
from memstate_core.run.store import Store
from memstate_core.state.graph import TOPIC, VECTOR, open_graph
from memstate_core.state.snapshots import Snapshot

LEAST_COSINE = 0.999
"""To the vector in the cache: two runtimes of one model differ by less (`memstate_core.embed.verified`)."""
_EXACT = (
    "windows.npy",
    *(f"{folder}/{file}" for folder in (EVIDENCE_TERMS, TOPIC_TERMS) for file in POSTING_FILES),
)
_LENGTHS = "window_lengths.npy"


def rebuilt_problems(snapshot: Snapshot, store: Store, run: Run, scratch: Path) -> list[str]:
    """Differences between a snapshot's files and those of the ledger, folded to the same state.

    Args:
        snapshot: the snapshot, whose files have their digests.
        store: the store with the snapshot's model.
        run: the run that folded the ledger.
        scratch: a folder to write to, which does not exist.
    """
    expected, said = evidence_rows(store, run)
    found = pl.read_parquet(snapshot.path / "evidence.parquet", glob=False)
    problems = _alias_problems(snapshot, run)
    if not found["evidence_id"].equals(expected["evidence_id"]):
        return [
            *problems,
            f"evidence.parquet has {quantity(found.height, 'rows')}, the ledger {expected.height} or others",
        ]
    if odd := differing_columns(found, expected, "evidence_id"):
        return [*problems, f"evidence.parquet differs from the ledger in {odd}"]
    vectors = read_array(snapshot.path / "evidence_vectors.npy")
    if len(vectors) != len(said):
        return [
            *problems,
            f"evidence_vectors.npy has {quantity(len(vectors), 'rows')}, the ledger {quantity(len(said), 'turns')}",
        ]
    with open_graph(snapshot.path / GRAPH_FILE, read_only=True) as graph:
        topics, held = graph.read(TOPIC), graph.read(VECTOR)
    problems += _vector_problems(store, "evidence_vectors.npy", vectors, said, range(len(said)))
    problems += _topic_vector_problems(store, topics, held)
    scratch.mkdir()
    write_topic_index(scratch, topics, held, write_evidence_index(scratch, expected, vectors))
    return problems + _array_problems(snapshot, scratch)


def _alias_problems(snapshot: Snapshot, run: Run) -> list[str]:
    columns = list(ALIASES)
    found = pl.read_parquet(snapshot.path / "aliases.parquet", glob=False, columns=columns).sort(columns)
    expected = run.table("aliases", ALIASES).select(columns).sort(columns)
    return [] if found.equals(expected) else ["aliases.parquet differs from the aliases that the ledger gives"]


def _topic_vector_problems(store: Store, topics: pl.DataFrame, held: pl.DataFrame) -> list[str]:
    """Whether topics have the vectors of their texts in the graph, with which `index_problems` compares the index."""
    both = held.select("id", "embedding").join(topics.select("id", "title", "summary"), on="id").sort("id")
    texts = both.select(embedding_text(pl.col("title"), pl.col("summary"))).to_series()
    return _vector_problems(store, "the graph's table Vector", matrix(both["embedding"]), texts, both["id"])


def _vector_problems(
    store: Store, name: str, vectors: Vectors, texts: pl.Series, rows: Sequence[object] | pl.Series
) -> list[str]:
    """Whether vectors are those of their texts, as far as the cache has these; `rows` are the names of both."""
    at, known = cached(store.home.cache, store.encoder, texts.fill_null("").to_list())
    if not len(at):
        return []
    if known.shape[1] != vectors.shape[1]:
        return [f"{name} has {vectors.shape[1]} dimensions, the embedding cache {known.shape[1]}"]
    alike = (vectors[at] == known).all(axis=1) | ((vectors[at] * known).sum(axis=1) >= LEAST_COSINE)
    odd = at[~alike]
    if not len(odd):
        return []
    return [f"{name} differs from the embedding cache in {quantity(len(odd), 'rows')}, first {rows[int(odd[0])]}"]


def _array_problems(snapshot: Snapshot, made: Path) -> list[str]:
    """Whether arrays, and the places of scopes, are those of an index made anew of the same rows and vectors."""
    odd = [name for name in _EXACT if not _equal(snapshot.path / name, made / name)]
    odd += [_LENGTHS] * (not _close(snapshot.path / _LENGTHS, made / _LENGTHS))
    places = (pl.read_parquet(folder / SCOPES_FILE, glob=False) for folder in (snapshot.path, made))
    odd += [SCOPES_FILE] * (not next(places).equals(next(places)))
    return [f"{name} differs from an index made of the ledger" for name in odd]


def _equal(found: Path, expected: Path) -> bool:
    one, other = read_array(found), read_array(expected)
    return one.dtype == other.dtype and np.array_equal(one, other)


def _close(found: Path, expected: Path) -> bool:
    one, other = read_array(found), read_array(expected)
    return one.shape == other.shape and np.allclose(one, other, rtol=1e-4, atol=1e-6)
