"""What all assets of the nightly run share: partitions, the pool of the single writer, the frames."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import dagster as dg

WRITER_POOL = "memstate_writer"
Decorator = Callable[[Callable[..., Any]], dg.AssetsDefinition]


def asset(partitions: dg.PartitionsDefinition[str], group: str, kind: str, after: Iterable[str] = ()) -> Decorator:
    """Makes a function a step of the nightly run.

    Args:
        partitions: the shards.
        group: the group that it belongs to in the asset graph.
        kind: what it writes with, for the badge in the UI.
        after: assets that must come first though their frames are not read.
    """
    return dg.asset(
        partitions_def=partitions,
        group_name=group,
        pool=WRITER_POOL,
        kinds={"polars", kind},
        io_manager_key="frames",
        deps=list(after),
    )
