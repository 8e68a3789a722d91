"""Steps of the core as materializations of assets, with their counts, tables and seconds as metadata."""

from __future__ import annotations

import time
from collections.abc import Callable

import dagster as dg
import polars as pl

from memstate_core.night.set_aside import contained
from memstate_core.run.run import Run
from memstate_core.run.step import StepResult
from memstate_core.run.store import Store
from memstate_pipeline.markdown import as_markdown


def materialize(
    context: dg.AssetExecutionContext, store: Store, run: Run, step: Callable[[], StepResult]
) -> dg.MaterializeResult[pl.DataFrame]:
    """Runs a step and stores its decisions, counts and seconds with the run.

    Raises:
        EvidenceSetAside: the step failed with some evidence, which the next run leaves out.
    """
    name = context.asset_key.path[-1]
    began = time.perf_counter()
    with contained(store, run, name):
        result = step()
        seconds = time.perf_counter() - began
        run.keep(name, result, seconds)
    return dg.MaterializeResult(value=result.frame, metadata=metadata(result, seconds))


def metadata(result: StepResult, seconds: float) -> dict[str, dg.RawMetadataValue]:
    """The counts, tables and seconds of a step as Dagster metadata."""
    tables = {title: dg.MetadataValue.md(as_markdown(frame)) for title, frame in result.tables.items()}
    return {"seconds": round(seconds, 3), **result.counts, **tables}
