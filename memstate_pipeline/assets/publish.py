"""Group `publish`: the working graph becomes the served snapshot, and a page reports the run."""

import dagster as dg
import polars as pl

from memstate_core.night.plan_guard import require_planned
from memstate_core.night.publish import drafted, publish
from memstate_core.night.set_aside import quarantine_set_aside
from memstate_core.run.step import StepResult
from memstate_pipeline.asset_plots import growth_of, seconds_of
from memstate_pipeline.assets.common import asset
from memstate_pipeline.publication import publish_shard, unpublished
from memstate_pipeline.report.collect import growth
from memstate_pipeline.report.run_report import report_run
from memstate_pipeline.resources import StoreResource
from memstate_pipeline.shards import record_published
from memstate_pipeline.steps import materialize, pages_of, shown


def publish_assets(partitions: dg.PartitionsDefinition[str]) -> list[dg.AssetsDefinition]:
    """The assets of this group."""

    @asset(partitions, "publish", "kuzu", "snapshot", after=["forgetting"])
    def snapshot(context: dg.AssetExecutionContext, store: StoreResource) -> dg.MaterializeResult[pl.DataFrame]:
        """Publishes the working graph: verifies it, then moves CURRENT; refuses if the run differs from its plan."""
        run = store.run(context.partition_key)
        require_planned(run)

        def published_now() -> StepResult:
            made = drafted(store.store, run)
            with store.held():
                quarantine_set_aside(store.store, run)
                result = publish(store.store, run, made)
                store.commit()
            return result

        published = materialize(context, store, run, published_now)
        record_published(context, store.store, run.facts.shard, published.metadata or {})
        uploaded = publish_shard(store.store, run.facts.shard, context.run.tags)
        if "not_published" in uploaded:
            context.log.error(f"the snapshot is served here, but not published: {uploaded['not_published']}")
        return published._replace(metadata={**(published.metadata or {}), **uploaded})

    @asset(partitions, "publish", "html", "report", after=["snapshot"])
    def maintenance_report(context: dg.AssetExecutionContext, store: StoreResource) -> dg.MaterializeResult[None]:
        """Writes the page of the run, as HTML and as JSON; nothing in the published state makes it fail."""
        run = store.run(context.partition_key)
        timed = seconds_of(run.notes())  # the report ends the run, with its notes
        with store.held():
            report = report_run(store.store, run, *unpublished(store.store, [run.facts.shard], context.run.tags))
            store.commit()
        if report is None:
            context.log.error(
                "the snapshot is published, its report is not written: two attempts killed their processes"
            )
            return dg.MaterializeResult(metadata={"incomplete": "not written"})
        pages = pages_of(report.page, store.store.settings.ui.api_url) | {"data": dg.MetadataValue.path(report.data)}
        if report.problem is not None:
            context.log.error(f"the snapshot is published, its report is incomplete: {report.problem}")
            return dg.MaterializeResult(metadata=pages | {"incomplete": report.problem})
        plots = growth_of(growth(store.store, run.facts.shard)) | timed
        return dg.MaterializeResult(metadata=pages | shown(plots))

    return [snapshot, maintenance_report]
