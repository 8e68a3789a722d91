"""Conversion of Parquet rows to JSON, so that they are validated like lines.

Parquet has one type per column and a null in every empty cell, so a null is treated as an absent key, and a struct of
nulls as an absent object. Only the `value` of a field keeps its null, which clears the value.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import polars as pl

from memstate_core.ingest.containers.parquet_slices import ParquetSlices
from memstate_core.ingest.raw_rows import RawRow, RowAssembler


def parquet_rows(slices: ParquetSlices, longest: int) -> Iterator[RawRow]:
    """The rows of a parquet file as JSON, read a slice at a time.

    Args:
        slices: the open file.
        longest: most bytes, as JSON, of a row that is kept whole.

    Raises:
        BrokenContainer: the file unpacks to more than MAX_RATIO times its size.
        pyarrow.ArrowException: the file is damaged.
        OSError: likewise.
    """
    assembler = RowAssembler(longest)
    number = 0
    for part in slices:
        frame = pl.from_arrow(part)
        assert isinstance(frame, pl.DataFrame)
        for row in frame.iter_rows(named=True):
            number += 1
            text = json.dumps(_without_nulls(row) or {}, default=_as_json, ensure_ascii=False, separators=(",", ":"))
            encoded = text.encode("utf-8", "surrogateescape")
            slices.count(len(encoded))
            raw = assembler.finish(number, encoded)
            if raw is not None:
                yield raw


def _without_nulls(value: Any) -> Any:
    """The value without its nulls; None for a struct of nulls."""
    if isinstance(value, dict):
        kept = {key: _without_nulls(item) for key, item in value.items() if item is not None}
        kept = {key: item for key, item in kept.items() if item is not None}
        if kept and "value" in value and "name" in value:
            kept.setdefault("value", None)
        return kept or None
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def _as_json(value: object) -> object:
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    return str(value)
