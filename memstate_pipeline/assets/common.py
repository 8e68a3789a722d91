"""What the assets of the nightly run share: partitions, the pool of the single writer, the I/O manager."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import dagster as dg

from memstate_core.state.interrupts import delayed_interrupts
from memstate_pipeline.progress import reports_progress

WRITER_POOL = "memstate_writer"
Decorator = Callable[[Callable[..., Any]], dg.AssetsDefinition]


def asset(partitions: dg.PartitionsDefinition[str], group: str, kind: str, after: Iterable[str] = ()) -> Decorator:
    """Decorates a function as an asset of the nightly run.

    Args:
        partitions: the shards.
        group: the asset group.
        kind: the storage that it writes, shown as a badge in the UI.
        after: assets that must run before it although their frames are not read.
    """
    as_asset = dg.asset(
        partitions_def=partitions,
        group_name=group,
        pool=WRITER_POOL,
        kinds={"polars", kind},
        io_manager_key="frames",
        deps=list(after),
    )
    return lambda function: as_asset(delayed_interrupts()(reports_progress(function)))
