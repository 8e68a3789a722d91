"""What the assets of the nightly run share: partitions, the pool of the single writer, the I/O manager."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import dagster as dg

from memstate_core.state.process.interrupts import delayed_interrupts
from memstate_pipeline.columns import column_schema
from memstate_pipeline.progress import reports_progress

WRITER_POOL = "memstate_writer"
Decorator = Callable[[Callable[..., Any]], dg.AssetsDefinition]


WRITES_TAG = "memstate/writes"
"""The tag of an asset that names what it writes: `ledger`, `working_graph`, `snapshot` or `report`."""


def asset(
    partitions: dg.PartitionsDefinition[str], group: str, kind: str, writes: str, after: Iterable[str] = ()
) -> Decorator:
    """Decorates a function as an asset of the nightly run.

    Args:
        partitions: the shards.
        group: the asset group.
        kind: the storage that it writes, shown as a badge in the UI.
        writes: what it writes, as a tag by which the UI filters.
        after: assets that must run before it although their frames are not read.
    """

    def decorated(function: Callable[..., Any]) -> dg.AssetsDefinition:
        as_asset = dg.asset(
            partitions_def=partitions,
            group_name=group,
            pool=WRITER_POOL,
            kinds={"polars", kind},
            tags={WRITES_TAG: writes},
            metadata=column_schema(function.__name__),
            io_manager_key="frames",
            deps=list(after),
        )
        return as_asset(delayed_interrupts()(reports_progress(function)))

    return decorated
