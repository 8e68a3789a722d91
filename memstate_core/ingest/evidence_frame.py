"""Conversion of accepted records to the columns of the evidence table.

Nested columns are built from offsets and flat columns, as Arrow stores them, since a Python object per cell would cost
more than parsing the row.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import accumulate, chain
from typing import Any

import polars as pl
import pyarrow as pa

from memstate_core.ingest.validation.validate import RECORD, Record
from memstate_core.model.frames import MOMENT, Schema, conform
from memstate_core.model.ledger_tables import EDGE_TO, EVIDENCE, FIELD_VALUE

EVIDENCE_ID_LENGTH = 32
"""Hex digits of the content's SHA-256 in an evidence id; the content includes scope and observation id."""

IDENTITY: Schema = dict.fromkeys(RECORD[:3], pl.String)
"""The columns by which a record is deduplicated: scope, observation id and content digest."""


def identity_frame(records: Sequence[Record]) -> pl.DataFrame:
    """The identity of each record (columns IDENTITY), in their order."""
    return pl.DataFrame([_series(name, [record[at] for record in records]) for at, name in enumerate(IDENTITY)])


def evidence_frame(
    records: Sequence[Record], now: datetime, run_id: str, arrived: Sequence[datetime] | None = None
) -> pl.DataFrame:
    """The records as evidence (columns EVIDENCE), in their order.

    Args:
        records: the accepted records.
        now: the time of the import.
        run_id: the run or command that imports.
        arrived: when each record arrived, which is its observation time where it has none; `now` for all by default.
    """
    cells = list(zip(*records, strict=True)) or [()] * len(RECORD)
    columns = {name: _series(name, column) for name, column in zip(RECORD, cells, strict=True)}
    moment = pl.lit(now, MOMENT)
    observed = moment if arrived is None else pl.Series(arrived, dtype=MOMENT)
    return conform(
        pl.DataFrame(list(columns.values())).with_columns(
            pl.col("observed_at").fill_null(observed),
            evidence_id=pl.col("content_sha256").str.head(EVIDENCE_ID_LENGTH),
            imported_at=moment,
            run_id=pl.lit(run_id),
        ),
        EVIDENCE,
    )


def _series(name: str, cells: Sequence[Any]) -> pl.Series:
    if name == "fields":
        return _nested(name, cells, FIELD_VALUE)
    if name == "edges":
        return _nested(name, cells, EDGE_TO)
    return _flat(name, cells, EVIDENCE[name])


def _flat(name: str, cells: Sequence[Any], dtype: Any) -> pl.Series:
    if dtype != MOMENT:
        return pl.Series(name, cells, dtype)
    return pl.Series(name, cells, pl.String).str.to_datetime("%Y-%m-%dT%H:%M:%S%.fZ", time_unit="us", time_zone="UTC")


def _nested(name: str, lists: Sequence[Sequence[tuple[Any, ...]]], row: pl.Struct) -> pl.Series:
    offsets = pa.array(accumulate(map(len, lists), initial=0), pa.int64())
    cells = list(zip(*chain.from_iterable(lists), strict=True)) or [()] * len(row.fields)
    columns = [
        _flat(field.name, column, field.dtype).to_arrow() for field, column in zip(row.fields, cells, strict=True)
    ]
    structs = pa.StructArray.from_arrays(columns, names=[field.name for field in row.fields])
    return pl.Series(name, pa.LargeListArray.from_arrays(offsets, structs), pl.List(row))
