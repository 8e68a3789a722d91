"""Steps of the core as materializations of assets, with their counts, tables and seconds as metadata."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import dagster as dg
import polars as pl

from memstate_core.night.set_aside import contained
from memstate_core.run.run import Run
from memstate_core.run.step import StepResult
from memstate_core.run.store import Store
from memstate_pipeline.asset_plots import Plots
from memstate_pipeline.markdown import as_markdown


def materialize(
    context: dg.AssetExecutionContext,
    store: Store,
    run: Run,
    step: Callable[[], StepResult],
    plots: Callable[[pl.DataFrame], Plots] | None = None,
) -> dg.MaterializeResult[pl.DataFrame]:
    """Runs a step and stores its decisions, counts and seconds with the run.

    Args:
        context: that of the asset.
        store: the store.
        run: the run in progress.
        step: what the asset does.
        plots: draws the frame that the step returns, for the metadata of the asset.

    Raises:
        EvidenceSetAside: the step failed with some evidence, which the next run leaves out.
    """
    name = context.asset_key.path[-1]
    began = time.perf_counter()
    with contained(store, run, name):
        result = step()
        seconds = time.perf_counter() - began
        run.keep(name, result, seconds)
    drawn = {} if plots is None else shown(plots(result.frame))
    return dg.MaterializeResult(value=result.frame, metadata=metadata(result, seconds) | drawn)


def metadata(result: StepResult, seconds: float) -> dict[str, dg.RawMetadataValue]:
    """The counts, tables and seconds of a step as Dagster metadata."""
    return {"seconds": round(seconds, 3), **result.counts, **shown(result.tables)}


def shown(tables: Mapping[str, pl.DataFrame]) -> dict[str, dg.RawMetadataValue]:
    """Small frames as Markdown tables, by title."""
    return {title: dg.MetadataValue.md(as_markdown(frame)) for title, frame in tables.items()}
