"""From accepted records to the rows of the evidence table, column by column.

Nested columns are built from offsets and flat columns, as Arrow stores them, since a Python object per
cell would cost more than reading the row did.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import accumulate, chain
from operator import attrgetter
from typing import Any

import polars as pl
import pyarrow as pa

from memstate_core.ingest.validate import Record
from memstate_core.model.frames import EDGE_TO, EVIDENCE, FIELD_VALUE, conform

EVIDENCE_ID_LENGTH = 32
"""An evidence id is this many hex digits of the content's SHA-256, which covers scope and observation id."""

_SAID = (
    "observation_id", "kind", "actor", "session_id", "turn", "provenance", "source_uri", "text", "placement",
    "topic_id", "topic_key", "topic_kind", "title", "summary",
)  # fmt: skip


def evidence_frame(records: Sequence[Record], now: datetime, run_id: str) -> pl.DataFrame:
    """The records as evidence (columns EVIDENCE), in their order.

    Args:
        records: what was accepted.
        now: the time of the import, which also stands where no time of observation was given.
        run_id: the run or command that imports.
    """
    observations = [record.observation for record in records]
    columns = {name: _series(name, list(map(attrgetter(name), observations))) for name in _SAID}
    for name in ("scope", "observed_at", "content_sha256", "payload_json"):
        columns[name] = _series(name, list(map(attrgetter(name), records)))
    columns["fields"] = _nested([record.fields for record in records], FIELD_VALUE)
    columns["edges"] = _nested([record.edges for record in records], EDGE_TO)
    moment = pl.lit(now, EVIDENCE["imported_at"])
    return conform(
        pl.DataFrame(columns).with_columns(
            pl.col("observed_at").fill_null(moment),
            evidence_id=pl.col("content_sha256").str.head(EVIDENCE_ID_LENGTH),
            imported_at=moment,
            run_id=pl.lit(run_id),
        ),
        EVIDENCE,
    )


def _series(name: str, cells: list[Any]) -> pl.Series:
    return pl.Series(name, cells, EVIDENCE[name])


def _nested(lists: Sequence[Sequence[tuple[Any, ...]]], row: pl.Struct) -> pl.Series:
    offsets = pa.array(accumulate(map(len, lists), initial=0), pa.int64())
    cells = list(zip(*chain.from_iterable(lists), strict=True)) or [()] * len(row.fields)
    columns = [
        pl.Series(field.name, column, field.dtype).to_arrow() for field, column in zip(row.fields, cells, strict=True)
    ]
    structs = pa.StructArray.from_arrays(columns, names=[field.name for field in row.fields])
    return pl.Series(values=pa.LargeListArray.from_arrays(offsets, structs), dtype=pl.List(row))
