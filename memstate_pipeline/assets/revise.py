"""Group `revise`: duplicates are found and merged, and dependents of changed topics are queued for review."""

import dagster as dg
import polars as pl

from memstate_core.revise.dependency import queue_reviews
from memstate_core.revise.duplicates import find_duplicates
from memstate_core.revise.merge import merge_duplicates
from memstate_pipeline.asset_plots import probabilities
from memstate_pipeline.assets.common import asset
from memstate_pipeline.resources import StoreResource
from memstate_pipeline.steps import materialize


def revise_assets(partitions: dg.PartitionsDefinition[str]) -> list[dg.AssetsDefinition]:
    """The assets of this group."""

    @asset(partitions, "revise", "kuzu", "working_graph", after=["topic_embeddings"])
    def duplicate_pairs(
        context: dg.AssetExecutionContext, store: StoreResource, topics: pl.DataFrame
    ) -> dg.MaterializeResult[pl.DataFrame]:
        """Compares candidate duplicates and gives each pair a probability."""
        run = store.run(context.partition_key)
        return materialize(context, store, run, lambda: find_duplicates(store.store, run, topics), probabilities)

    @asset(partitions, "revise", "kuzu", "working_graph")
    def merges(
        context: dg.AssetExecutionContext, store: StoreResource, duplicate_pairs: pl.DataFrame
    ) -> dg.MaterializeResult[pl.DataFrame]:
        """Merges duplicates into a survivor; the other ids become tombstones that resolve to it."""
        run = store.run(context.partition_key)
        return materialize(context, store, run, lambda: merge_duplicates(store.store, run, duplicate_pairs))

    @asset(partitions, "revise", "kuzu", "working_graph")
    def dependency_review(
        context: dg.AssetExecutionContext, store: StoreResource, topics: pl.DataFrame, merges: pl.DataFrame
    ) -> dg.MaterializeResult[pl.DataFrame]:
        """Queues topics that depend on changed ones over extension edges for review."""
        run = store.run(context.partition_key)
        return materialize(context, store, run, lambda: queue_reviews(run, pl.concat([topics, merges])))

    return [duplicate_pairs, merges, dependency_review]
