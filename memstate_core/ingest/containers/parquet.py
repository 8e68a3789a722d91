"""From a parquet file to rows that read like lines: each row becomes the JSON text it stands for.

Parquet has one type a column and a null in every empty cell, so a null is an absent key here, and a
record without one set key is an absent record. Only the `value` of a field keeps its null, since there a
null says that the value was cleared. After this module nobody knows that a row came from parquet.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import polars as pl
import pyarrow.parquet as pq

from memstate_core.ingest.raw_rows import RawRow, RowAssembler

ROWS_AT_A_TIME = 10_000


def parquet_rows(table: pq.ParquetFile, longest: int) -> Iterator[RawRow]:
    """The rows of a parquet file as JSON, read a slice at a time.

    Args:
        table: the open file.
        longest: the most bytes that a row may have as JSON without being cut.

    Raises:
        pyarrow.ArrowException: the file is damaged.
        OSError: likewise.
    """
    assembler = RowAssembler(longest)
    number = 0
    for batch in table.iter_batches(batch_size=ROWS_AT_A_TIME):
        frame = pl.from_arrow(batch)
        assert isinstance(frame, pl.DataFrame)
        for row in frame.iter_rows(named=True):
            number += 1
            text = json.dumps(_said(row) or {}, default=_as_json, ensure_ascii=False, separators=(",", ":"))
            raw = assembler.finish(number, text.encode("utf-8", "surrogateescape"))
            if raw is not None:
                yield raw


def _said(value: Any) -> Any:
    """The value without its nulls; None where nothing is left of a record."""
    if isinstance(value, dict):
        kept = {key: _said(item) for key, item in value.items() if item is not None}
        kept = {key: item for key, item in kept.items() if item is not None}
        if kept and "value" in value and "name" in value:
            kept.setdefault("value", None)
        return kept or None
    return [_said(item) for item in value] if isinstance(value, list) else value


def _as_json(value: object) -> object:
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    return str(value)
