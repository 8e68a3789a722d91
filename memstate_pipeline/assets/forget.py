"""Group `forget`: salience decays, and faded topics leave the active set when it is full."""

import dagster as dg
import polars as pl

from memstate_core.forget.ladder import forget
from memstate_core.forget.salience import update_salience
from memstate_pipeline.asset_plots import salience_by_decade
from memstate_pipeline.assets.common import asset
from memstate_pipeline.resources import StoreResource
from memstate_pipeline.steps import materialize


def forget_assets(partitions: dg.PartitionsDefinition[str]) -> list[dg.AssetsDefinition]:
    """The assets of this group."""

    @asset(partitions, "forget", "kuzu", "working_graph", after=["dependency_review"])
    def salience(context: dg.AssetExecutionContext, store: StoreResource) -> dg.MaterializeResult[pl.DataFrame]:
        """Computes the salience of every field and topic at the run's logical time."""
        run = store.run(context.partition_key)
        return materialize(context, store, run, lambda: update_salience(run), salience_by_decade)

    @asset(partitions, "forget", "kuzu", "working_graph", after=["salience"])
    def forgetting(
        context: dg.AssetExecutionContext, store: StoreResource, evidence: pl.DataFrame
    ) -> dg.MaterializeResult[pl.DataFrame]:
        """Summarises, detaches and archives by policy; restores topics that have new evidence or accesses."""
        run = store.run(context.partition_key)
        return materialize(context, store, run, lambda: forget(store.store, run, evidence))

    return [salience, forgetting]
