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


def load_corpus(store: Store, run: Run) -> Corpus:
    """Loads the active topics of the working graph with fields, vectors, sources and keys, none that forms write."""
    with open_graph(run.graph, read_only=True, buffer_mib=store.settings.store.graph_buffer_mib) as graph:
        topics = graph.read(TOPIC, _TOPIC_COLUMNS, "r.state = 'active'").sort("scope", "id")
        topics = topics.filter(~pl.col("topic_kind").is_in(FORM_KINDS).fill_null(False))
        rows = topics.select("id").with_row_index("row").with_columns(pl.col("row").cast(pl.Int64))
        current = graph.read(REVISION, ["topic_id", "name", "value_json", "field_type"], _CURRENT)
        vectors = graph.read(VECTOR, ["id", "embedding"])
    values = field_values(current.join(rows, left_on="topic_id", right_on="id"))
    origins = _origins(store, run).join(rows, left_on="topic_id", right_on="id")
    sources = origins.filter(pl.col("source").is_not_null().all().over("row")).select("row", "source").unique()
    keys = origins.filter(pl.col("key").is_not_null()).select("row", "key").unique()
    return Corpus(topics, values, _embeddings(rows, vectors), sources.sort("row", "source"), keys.sort("row", "key"))


def _origins(store: Store, run: Run) -> pl.DataFrame:
    """Sources and keys of evidence, by topic (columns topic_id, source, key)."""
    columns = ["evidence_id", "source_uri", "topic_key"]
    evidence = shard_evidence(store.ledger, run, columns).rename({"source_uri": "source", "topic_key": "key"})
    return evidence.join(run.table("links", EVIDENCE_TOPIC), on="evidence_id").select("topic_id", "source", "key")


def _embeddings(rows: pl.DataFrame, vectors: pl.DataFrame) -> np.typing.NDArray[np.float32]:
    known = rows.join(vectors, on="id")
    found = matrix(known["embedding"])
    embeddings = np.zeros((rows.height, found.shape[1]), np.float32)
    embeddings[known["row"].to_numpy()] = found
    return embeddings
