"""Group `topics`: the ledger is folded into the graph, and changed topics are embedded."""

import dagster as dg
import polars as pl

from memstate_core.run.apply import update_topics
from memstate_core.run.embed_topics import refresh_embeddings
from memstate_pipeline.assets.common import asset
from memstate_pipeline.resources import StoreResource
from memstate_pipeline.steps import materialize


def topic_assets(partitions: dg.PartitionsDefinition[str]) -> list[dg.AssetsDefinition]:
    """The assets of this group."""

    @asset(partitions, "topics", "kuzu", "working_graph", after=["placements"])
    def topics(context: dg.AssetExecutionContext, store: StoreResource) -> dg.MaterializeResult[pl.DataFrame]:
        """Folds the placed evidence into topics, fields, histories and edges, and writes the changes."""
        run = store.run(context.partition_key)
        return materialize(context, store, run, lambda: update_topics(store.store, run))

    @asset(partitions, "topics", "kuzu", "working_graph", after=["topics"])
    def topic_embeddings(context: dg.AssetExecutionContext, store: StoreResource) -> dg.MaterializeResult[pl.DataFrame]:
        """Embeds topics whose title or summary changed; known texts come from the cache."""
        run = store.run(context.partition_key)
        return materialize(context, store, run, lambda: refresh_embeddings(store.store, run))

    return [topics, topic_embeddings]
