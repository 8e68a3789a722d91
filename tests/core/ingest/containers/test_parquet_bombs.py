"""Parquet files whose rows share values, so that they unpack to far more than their size."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from memstate_core.ingest.containers import parquet_slices
from memstate_core.ingest.containers.parquet_slices import SLICE_BYTES, ParquetSlices

LONG = "x" * (1_000_000)


def written(path: Path, column: pa.Array, **options: Any) -> Path:
    pq.write_table(pa.table({"text": column}), path, compression="zstd", store_schema=False, **options)
    return path


def repeated(rows: int) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(np.zeros(rows, np.int32), pa.array([LONG]))


def in_lists(rows: int, each: int) -> pa.ListArray:
    return pa.ListArray.from_arrays(np.arange(0, rows * each + 1, each, dtype=np.int32), repeated(rows * each))


def without_dictionary(rows: int) -> pa.Array:
    return pa.array([LONG] * rows)


DELTA: dict[str, Any] = {"use_dictionary": False, "column_encoding": {"text": "DELTA_BYTE_ARRAY"}}


@pytest.fixture
def small_limit(monkeypatch: pytest.MonkeyPatch) -> int:
    """Lets any file unpack to 32 MiB."""
    monkeypatch.setattr(parquet_slices, "RATIO_FROM_BYTES", 32 << 20)
    return 32 << 20


@pytest.mark.slow
@pytest.mark.parametrize(
    ("column", "options"),
    [
        pytest.param(repeated(1_000_000), {}, id="dictionary"),
        pytest.param(repeated(4000), {"row_group_size": 10}, id="row groups"),
        pytest.param(without_dictionary(200), DELTA, id="delta"),
    ],
)
def test_a_parquet_bomb_is_read_only_so_far_and_in_little_memory(desk, small_limit, column, options):
    path = written(desk.folder / "bomb.parquet", column, **options)
    peak_before = pa.default_memory_pool().max_memory() or 0
    tracemalloc.start()
    report = desk.read(path, desk.file("good.jsonl", {"text": "good"}))
    assert tracemalloc.get_traced_memory()[1] < 5 * small_limit
    tracemalloc.stop()
    assert (pa.default_memory_pool().max_memory() or 0) <= max(peak_before, 512 << 20)
    bomb, good = report.files
    assert "bomb.parquet" in report.errors[0].message
    assert "it looks like a bomb" in report.errors[0].message
    assert (len(report.errors), good.accepted) == (1, 1)
    assert 16 <= bomb.read == bomb.accepted + bomb.duplicate <= 33


@pytest.mark.usefixtures("small_limit")
def test_one_row_of_many_long_elements_is_refused_before_it_is_decoded(desk):
    path = written(desk.folder / "bomb.parquet", in_lists(3, 100_000))
    report = desk.read(path)
    assert (report.read, "it looks like a bomb" in report.errors[0].message) == (0, True)


@pytest.mark.usefixtures("small_limit")
def test_empty_elements_without_number_are_refused_by_the_metadata(desk):
    lists = pa.ListArray.from_arrays([0, 10_000_000], pa.nulls(10_000_000, pa.string()))
    report = desk.read(written(desk.folder / "bomb.parquet", lists))
    assert "row group 0 unpacks" in report.errors[0].message


def test_rows_that_hold_almost_nothing_count_as_well(desk, monkeypatch):
    monkeypatch.setattr(parquet_slices, "RATIO_FROM_BYTES", 1 << 10)
    monkeypatch.setattr(parquet_slices, "MAX_RATIO", 1)
    monkeypatch.setattr(parquet_slices, "ROWS_AT_A_TIME", 100)
    report = desk.read(written(desk.folder / "bomb.parquet", pa.nulls(5000, pa.string())))
    assert (400 < report.read < 1000, "it looks like a bomb" in report.errors[0].message) == (True, True)


def test_slices_are_small_and_hold_all_rows(tmp_path):
    texts = [None, "", LONG, "é"] * 25
    nested = pa.array([None if text is None else [{"name": text, "value": None}, None] for text in texts])
    table = pa.table({"text": texts, "fields": nested, "bytes": pa.array([b"ab", None] * 50), "turn": range(100)})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=60)
    with (tmp_path / "a.parquet").open("rb") as file:
        parts = list(ParquetSlices(file, 1 << 20))
    assert pa.Table.from_batches(parts).equals(table)
    assert max(part.get_total_buffer_size() for part in parts) < 2 * SLICE_BYTES
    assert len(parts) > 2
