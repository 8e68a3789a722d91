"""Loads a corpus for matching from the working graph and the ledger."""

from __future__ import annotations

import numpy as np
import polars as pl

from memstate_core.embed.matrix import matrix
from memstate_core.model.forms.registry import FORM_KINDS
from memstate_core.model.step_frames import EVIDENCE_TOPIC
from memstate_core.revise.matching.corpus import Corpus, field_values
from memstate_core.run.run import Run
from memstate_core.run.store import Store
from memstate_core.run.view import shard_evidence
from memstate_core.state.graph import REVISION, TOPIC, VECTOR, open_graph

_TOPIC_COLUMNS = ["id", "scope", "title", "summary", "topic_kind", "created_at"]
_CURRENT = "r.part = 'field' AND r.rank = 0 AND r.value_json <> 'null'"


def load_corpus(store: Store, run: Run, scopes: pl.Series | None = None) -> Corpus:
    """Loads the active topics of the working graph with fields, vectors, sources and keys, none that forms write.

    Args:
        store: the store.
        run: the run in progress.
        scopes: the scopes to load; all by default.
    """
    with open_graph(run.graph, read_only=True, buffer_mib=store.settings.store.graph_buffer_mib) as graph:
        topics = graph.read(TOPIC, _TOPIC_COLUMNS, "r.state = 'active'").sort("scope", "id")
        topics = topics.filter(~pl.col("topic_kind").is_in(FORM_KINDS).fill_null(False))
        topics = topics if scopes is None else topics.filter(pl.col("scope").is_in(scopes.implode()))
        owners = None if scopes is None else topics["id"]
        rows = topics.select("id").with_row_index("row").with_columns(pl.col("row").cast(pl.Int64))
        current = graph.read_of(REVISION, ["topic_id", "name", "value_json", "field_type"], owners, _CURRENT)
        vectors = graph.read_of(VECTOR, ["id", "embedding"], owners)
    values = field_values(current.join(rows, left_on="topic_id", right_on="id"))
    origins = _origins(store, run, owners).join(rows, left_on="topic_id", right_on="id")
    sources = origins.filter(pl.col("source").is_not_null().all().over("row")).select("row", "source").unique()
    keys = origins.filter(pl.col("key").is_not_null()).select("row", "key").unique()
    return Corpus(topics, values, _embeddings(rows, vectors), sources.sort("row", "source"), keys.sort("row", "key"))


def _origins(store: Store, run: Run, topics: pl.Series | None) -> pl.DataFrame:
    """Sources and keys of the evidence of some topics, or of all (columns topic_id, source, key)."""
    columns, links = ["evidence_id", "source_uri", "topic_key"], run.table("links", EVIDENCE_TOPIC)
    links = links if topics is None else links.filter(pl.col("topic_id").is_in(topics.implode()))
    among = None if topics is None else links["evidence_id"]
    evidence = shard_evidence(store.ledger, run, columns, among).rename({"source_uri": "source", "topic_key": "key"})
    return evidence.join(links, on="evidence_id").select("topic_id", "source", "key")


def _embeddings(rows: pl.DataFrame, vectors: pl.DataFrame) -> np.typing.NDArray[np.float32]:
    known = rows.join(vectors, on="id")
    found = matrix(known["embedding"])
    embeddings = np.zeros((rows.height, found.shape[1]), np.float32)
    embeddings[known["row"].to_numpy()] = found
    return embeddings
