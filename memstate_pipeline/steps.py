"""Steps of the core as materializations of assets, with their counts, tables and seconds as metadata."""

from __future__ import annotations

import time
from collections.abc import Callable

import dagster as dg
import polars as pl

from memstate_core.ingest.unforeseen import described, is_unforeseen
from memstate_core.night.set_aside import contained
from memstate_core.run.run import Run
from memstate_core.run.step import StepResult
from memstate_core.run.store import Store


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


def as_markdown(frame: pl.DataFrame) -> str:
    """A small frame as a Markdown table, or why it cannot be shown: nothing in a cell makes a step fail."""
    if frame.is_empty():
        return "nothing"
    try:
        return _table(frame)
    except BaseException as error:
        if not is_unforeseen(error):
            raise
        return f"not shown, {described(error)}"


def _table(frame: pl.DataFrame) -> str:
    with pl.Config(tbl_formatting="MARKDOWN", tbl_hide_dataframe_shape=True, tbl_hide_column_data_types=True) as config:
        config.set_tbl_rows(-1).set_tbl_cols(-1).set_fmt_str_lengths(80).set_tbl_width_chars(2000)
        return str(frame)
