"""Steps of the core as materializations of assets, with their counts, tables and seconds as metadata."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import quote

import dagster as dg
import polars as pl

from memstate_core.night.set_aside import contained
from memstate_core.run.run import Run
from memstate_core.run.step import StepResult
from memstate_pipeline.asset_plots import Plots
from memstate_pipeline.columns import column_lineage
from memstate_pipeline.markdown import tables
from memstate_pipeline.resources import StoreResource


def materialize(
    context: dg.AssetExecutionContext,
    store: StoreResource,
    run: Run,
    step: Callable[[], StepResult],
    plots: Callable[[pl.DataFrame], Plots] | None = None,
) -> dg.MaterializeResult[pl.DataFrame]:
    """Runs a step and stores its decisions, counts and seconds with the run.

    Args:
        context: that of the asset.
        store: the store, as a resource.
        run: the run in progress.
        step: what the asset does.
        plots: draws the frame that the step returns, for the metadata of the asset.

    Raises:
        EvidenceSetAside: the step failed with some evidence, which the next run leaves out.
    """
    name = context.asset_key.path[-1]
    began = time.perf_counter()
    with contained(store.store, run, name, store.held):
        result = step()
        seconds = time.perf_counter() - began
        run.keep(name, result, seconds)
    drawn = {} if plots is None else shown(plots(result.frame))
    described = metadata(result, seconds, store.store.settings.ui.api_url)
    return dg.MaterializeResult(value=result.frame, metadata=described | drawn | column_lineage(name))


def metadata(result: StepResult, seconds: float, api_url: str) -> dict[str, dg.RawMetadataValue]:
    """The counts, tables and seconds of a step as Dagster metadata."""
    return {"seconds": round(seconds, 3), **result.counts, **shown(result.tables, api_url)}


def shown(frames: Mapping[str, pl.DataFrame], api_url: str = "") -> dict[str, dg.RawMetadataValue]:
    """Small frames as Markdown tables, by title."""
    return {title: dg.MetadataValue.md(table) for title, table in tables(frames, api_url).items()}


def pages_of(page: Path, api_url: str) -> dict[str, dg.RawMetadataValue]:
    """A report page as Dagster metadata: its path, and where a server opens it."""
    opened = {"open": dg.MetadataValue.url(f"{api_url}/v1/reports/{quote(page.name)}")} if api_url else {}
    return {"page": dg.MetadataValue.path(page), **opened}
