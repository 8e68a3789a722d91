"""Group `ingest`: dumps become evidence, and evidence is placed in topics."""

import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import dagster as dg
import polars as pl

from memstate_core.ingest import unreported
from memstate_core.ingest.accesses.collect import AccessReport
from memstate_core.ingest.inbox import waiting
from memstate_core.ingest.report import ImportReport
from memstate_core.model.errors import ShardRetired, StagingMissing
from memstate_core.model.text import parse_moment
from memstate_core.night.plan_file import Plan, read_plan
from memstate_core.night.plan_guard import expect, require_unmoved
from memstate_core.night.rebuild import ensure_served
from memstate_core.night.reused_base import place_or_reuse_base
from memstate_core.night.set_aside import contained, set_aside_after_deaths
from memstate_core.run.begin import begin_run, new_evidence
from memstate_core.run.run import Run, died_in
from memstate_core.run.step import StepResult
from memstate_core.run.store import Store
from memstate_core.state.lock import holder_of
from memstate_pipeline.assets.common import asset
from memstate_pipeline.gates import accepted_in
from memstate_pipeline.inputs import take_in
from memstate_pipeline.report.run_report import report_interrupted
from memstate_pipeline.resources import NOW_TAG, PLAN_TAG, StoreResource
from memstate_pipeline.steps import materialize, metadata


def ingest_assets(partitions: dg.PartitionsDefinition[str]) -> list[dg.AssetsDefinition]:
    """The assets of this group."""

    @asset(partitions, "ingest", "deltalake", "ledger")
    def evidence(context: dg.AssetExecutionContext, store: StoreResource) -> dg.MaterializeResult[pl.DataFrame]:
        """Imports the inbox and the accesses into the ledger, begins the run, and lists its new evidence."""
        with store.held():
            return _begun(context, store)

    @asset(partitions, "ingest", "deltalake", "ledger")
    def placements(
        context: dg.AssetExecutionContext, store: StoreResource, evidence: pl.DataFrame
    ) -> dg.MaterializeResult[pl.DataFrame]:
        """Decides the topic of each piece of new evidence and records the reason."""
        run = store.run(context.partition_key)
        return materialize(context, store, run, lambda: place_or_reuse_base(store.store, run, evidence))

    return [evidence, placements]


def _begun(context: dg.AssetExecutionContext, store: StoreResource) -> dg.MaterializeResult[pl.DataFrame]:
    """Takes in what waits, and begins the run of a shard."""
    began = time.perf_counter()
    now, shard, opened = logical_now(context), context.partition_key, store.store
    run_id = context.run.run_id
    accepted_in(context.run.tags)
    plan = planned(context)
    if shard not in opened.shards:
        raise ShardRetired(shard, opened.shards)
    if plan is not None:
        require_unmoved(opened, plan, shard)
    ensure_served(opened, shard, run_id)
    if (interrupted := report_interrupted(opened, shard)) is not None:
        context.log.warning(interrupted)
    taken = take_in(opened, run_id, now, context.run.tags)
    for problem in taken.problems:
        context.log.error(problem)
    unpublished = _uncovered(opened, shard)
    deaths = died_in(opened.home.work(shard))
    run = begin_run(opened, shard, run_id, now)
    if set_aside_after_deaths(opened, run, deaths):
        run = begin_run(opened, shard, run_id, now)
    if plan is not None:
        expect(opened, run, plan)
    being_written = waiting(opened.home, opened.settings)[1]
    with contained(opened, run, "evidence"):
        result = _with_import(new_evidence(opened, run), taken.imported, taken.accesses, being_written)
        seconds = time.perf_counter() - began
        run.keep("evidence", result, seconds)
    run.keep_import({**unreported.together(unpublished.values()), "covers": [*unpublished]})
    unread = [*map(str, taken.imported.errors), *taken.accesses.errors]
    shown = metadata(result, seconds, opened.settings.ui.api_url) | {"unreadable": dg.MetadataValue.json(unread)}
    return dg.MaterializeResult(value=result.frame, metadata=shown)


def _uncovered(store: Store, shard: str) -> dict[str, dict[str, Any]]:
    """Reports of imports by name that no page covers, nor will that of another shard's night in progress."""
    covered = set[str]()
    for other in store.shards:
        if other != shard and holder_of(store.home.shard_lock(other)):
            with suppress(StagingMissing):
                covered |= {*Run.load(store.home.work(other)).imported().get("covers", [])}
    return {name: report for name, report in unreported.kept(store.home.imports).items() if name not in covered}


def logical_now(context: dg.AssetExecutionContext | dg.OpExecutionContext) -> datetime:
    """The run's logical time: its tag, or the machine's clock where it has none."""
    given = context.run.tags.get(NOW_TAG)
    return parse_moment(given) if given else datetime.now(UTC)


def planned(context: dg.AssetExecutionContext) -> Plan | None:
    """The plan that the run is held to, or None where its tags name none.

    Raises:
        PlanInvalid: the file is not a plan, or was changed after it was written.
    """
    given = context.run.tags.get(PLAN_TAG)
    return read_plan(Path(given)) if given else None


def _with_import(
    result: StepResult, imported: ImportReport, accesses: AccessReport, being_written: list[Path]
) -> StepResult:
    counts = {name: getattr(imported, name) for name in ("read", "accepted", "duplicate", "quarantined")}
    counts["files_being_written"] = len(being_written)
    collected = {"accesses": accesses.accepted, "accesses_quarantined": accesses.quarantined}
    return StepResult(result.frame, {**result.counts, **counts, **collected}, result.tables)
