"""The `topic_embeddings` step: vectors for topics whose text or model changed, and for no others."""

from __future__ import annotations

import polars as pl

from memstate_core.embed.vector_cache import embed
from memstate_core.model.frames import Schema, project
from memstate_core.model.graph_tables import vector_columns
from memstate_core.model.text import embedding_text
from memstate_core.run.run import Run
from memstate_core.run.step import StepResult
from memstate_core.run.store import Store
from memstate_core.state.graph import TOPIC, VECTOR, open_graph

ENCODERS: Schema = {"model": pl.String, "run_by": pl.String}
"""The frame `encoder`: what encoded this run's texts; it is kept only if one was encoded."""


def refresh_embeddings(store: Store, run: Run) -> StepResult:
    """Makes the working graph's vectors those of its topics' texts.

    A topic's vector is stale when its text hash or its model's name differs; tombstones have none.

    Returns:
        Columns topic_id, text_hash: topics whose vector was set now.
    """
    model = store.encoder.model
    with open_graph(run.graph, buffer_mib=store.settings.store.graph_buffer_mib) as graph:
        topics = graph.read(TOPIC, ["id", "title", "summary", "text_hash", "state", "embedding_model"])
        living = topics.filter(pl.col("state") != "merged")
        held = graph.read(VECTOR, ["id", "text_hash", "model"])
        fresh = held.filter(pl.col("model") == model).join(living, on=["id", "text_hash"], how="semi")
        stale = living.join(fresh, on="id", how="anti").sort("id")
        texts = stale.select(embedding_text(pl.col("title"), pl.col("summary"))).to_series().to_list()
        embedded = embed(store.home.cache, store.encoder, texts)
        columns = vector_columns(embedded.vectors.shape[1])
        vectors = stale.with_columns(
            model=pl.lit(model), embedding=pl.Series(embedded.vectors, dtype=columns["embedding"])
        )
        graph.delete(VECTOR, held.join(fresh, on="id", how="anti").select("id"))
        graph.insert(VECTOR, project(vectors, columns))
        named = topics.with_columns(_model=pl.when(pl.col("state") != "merged").then(pl.lit(model)))
        changed = named.filter(pl.col("embedding_model").ne_missing(pl.col("_model")))
        graph.update(TOPIC, changed.select("id", embedding_model="_model"))
    if store.encoder.description is not None:
        run.keep_table("encoder", pl.DataFrame([(model, store.encoder.description)], ENCODERS, orient="row"))
    counts = {"topics_embedded": stale.height, "encoded": embedded.encoded, "from_cache": embedded.cached}
    return StepResult(stale.select("text_hash", topic_id="id"), counts)
