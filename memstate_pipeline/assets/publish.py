"""Group `publish`: the working graph becomes the served snapshot, and the run leaves its page."""

import dagster as dg
import polars as pl

from memstate_core.night.plan_guard import require_planned
from memstate_core.night.publish import publish
from memstate_pipeline.assets.common import asset
from memstate_pipeline.report.collect import collect
from memstate_pipeline.report.page import write_report
from memstate_pipeline.resources import StoreResource
from memstate_pipeline.steps import materialize


def publish_assets(partitions: dg.PartitionsDefinition[str]) -> list[dg.AssetsDefinition]:
    """The assets of this group."""

    @asset(partitions, "publish", "kuzu", after=["forgetting"])
    def snapshot(context: dg.AssetExecutionContext, store: StoreResource) -> dg.MaterializeResult[pl.DataFrame]:
        """Publishes: verified before CURRENT moves, and not at all when a check or the run's plan refused."""
        run = store.run(context.partition_key)
        require_planned(run)
        return materialize(context, run, lambda: publish(store.store, run))

    @asset(partitions, "publish", "kuzu", after=["snapshot"])
    def maintenance_report(context: dg.AssetExecutionContext, store: StoreResource) -> dg.MaterializeResult[None]:
        """One page about the run, for people (HTML) and for scripts (JSON)."""
        run = store.run(context.partition_key)
        html, data = write_report(store.store.home.reports, collect(store.store, run))
        run.end()
        paths = {"page": dg.MetadataValue.path(html), "data": dg.MetadataValue.path(data)}
        return dg.MaterializeResult(metadata=paths)

    return [snapshot, maintenance_report]
