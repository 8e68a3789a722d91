"""Decoding of Parquet files in bounded memory.

A value that a file stores once, in a dictionary, may stand in any number of its rows, so rows decode to far more bytes
than the file and its metadata show. Invariant: dictionaries are kept while a batch is read, the decoded size of each
row is computed from them, and only a slice that is known to be small is decoded.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from memstate_core.ingest.containers.compression import MAX_RATIO, RATIO_FROM_BYTES
from memstate_core.ingest.raw_rows import BrokenContainer

ROWS_AT_A_TIME = 10_000
SLICE_BYTES = 16 << 20
"""Most decoded bytes of a slice, unless a single row has more."""
_BATCH_BYTES = 256 << 20
"""Bound of a batch of columns that cannot be read as dictionaries."""
_VALUE_BYTES = 8
"""Memory of an element of a list, at least."""
_DELTA = "DELTA_BYTE_ARRAY"
"""The encoding that stores the common prefix of neighbouring values once."""
_NO_DICTIONARIES = {_DELTA, "DELTA_LENGTH_BYTE_ARRAY"}
"""Encodings that Arrow cannot read as dictionaries."""
_LISTS = (pa.ListArray, pa.LargeListArray)
_BINARY = (pa.StringArray, pa.LargeStringArray, pa.BinaryArray, pa.LargeBinaryArray)

Sizes = NDArray[np.int64]


class ParquetSlices:
    """The rows of an open Parquet file in slices.

    Args:
        file: the file, from its beginning.
        size: its size in bytes.

    Raises:
        pyarrow.ArrowException: the file is damaged.
        OSError: likewise.
    """

    def __init__(self, file: Any, size: int) -> None:
        plain = pq.ParquetFile(file, pre_buffer=False)
        self.metadata = plain.metadata
        self._schema = pa.schema([field.with_type(_without_views(field.type)) for field in plain.schema_arrow])
        self._columns = [plain.schema.column(at) for at in range(len(plain.schema))]
        self._size = size
        self._limit = max(RATIO_FROM_BYTES, MAX_RATIO * size)
        self._given = 0
        texts = [at for at, column in enumerate(self._columns) if column.physical_type == "BYTE_ARRAY"]
        encodings = {at: self._encodings(at) for at in texts}
        self._repeating = {at for at in texts if _DELTA in encodings[at]}
        dictionaries = [self._columns[at].path for at in texts if not encodings[at] & _NO_DICTIONARIES]
        self._table = pq.ParquetFile(file, pre_buffer=False, metadata=plain.metadata, read_dictionary=dictionaries)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Decoded slices of the file, in order.

        Raises:
            BrokenContainer: the rows decode to more than MAX_RATIO times the size of the file.
            pyarrow.ArrowException: the file is damaged.
            OSError: likewise.
        """
        for group in range(self.metadata.num_row_groups):
            self._check_group(group)
            for batch in self._table.iter_batches(batch_size=self._batch_rows(group), row_groups=[group]):
                yield from self._slices(batch)

    def count(self, size: int) -> None:
        """Counts the bytes of a row as the caller reads it; they are compared with the limit before the next slice."""
        self._given += size

    def _slices(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        sizes = sum((_sizes(column) for column in batch.columns), np.zeros(batch.num_rows, np.int64))
        ends, at = np.cumsum(sizes), 0
        while at < batch.num_rows:
            before = ends[at - 1] if at else 0
            until = max(at + 1, int(np.searchsorted(ends, before + SLICE_BYTES, side="right")))
            self._check(int(ends[until - 1] - before))
            yield batch.slice(at, until - at).cast(self._schema)
            at = until

    def _check(self, more: int) -> None:
        if self._given + more > self._limit:
            raise self._bomb(f"its rows unpack from {self._size:,} to more than {self._given:,} bytes")
        if more > RATIO_FROM_BYTES:
            raise BrokenContainer(f"a row unpacks to {more:,} bytes, expected at most {RATIO_FROM_BYTES:,}")

    def _check_group(self, group: int) -> None:
        """Checks a row group by its metadata: what its pages unpack to, and its number of list elements."""
        chunks = self._chunks(group)
        least = sum(max(chunk.total_uncompressed_size, self._width(at) * chunk.num_values) for at, chunk in chunks)
        if least > self._limit:
            raise self._bomb(f"row group {group} unpacks from {self._size:,} to at least {least:,} bytes")

    def _bomb(self, found: str) -> BrokenContainer:
        return BrokenContainer(f"{found}, expected at most {MAX_RATIO} times the size: it looks like a bomb")

    def _batch_rows(self, group: int) -> int:
        """Rows of a batch: fewer where a column is wide, or may repeat its longest value without a dictionary."""
        sizes = {at: chunk.total_uncompressed_size for at, chunk in self._chunks(group)}
        row = sum(size if at in self._repeating else self._width(at) for at, size in sizes.items())
        return int(min(ROWS_AT_A_TIME, max(1, _BATCH_BYTES // max(1, row))))

    def _width(self, at: int) -> int:
        """Bytes that each value of a column takes at least; 0 where rows of a batch bound them."""
        column = self._columns[at]
        return max(column.length or 0, _VALUE_BYTES if column.max_repetition_level else 0)

    def _encodings(self, at: int) -> set[str]:
        groups = range(self.metadata.num_row_groups)
        return {name for group in groups for name in self.metadata.row_group(group).column(at).encodings}

    def _chunks(self, group: int) -> list[tuple[int, Any]]:
        columns = self.metadata.row_group(group)
        return [(at, columns.column(at)) for at in range(columns.num_columns)]


def _sizes(array: pa.Array) -> Sizes:
    """The decoded bytes of each element of an array."""
    found: Sizes
    if isinstance(array, pa.DictionaryArray):
        return _taken(_sizes(array.dictionary), array.indices)
    if isinstance(array, pa.ExtensionArray):
        return _sizes(array.storage)
    if isinstance(array, pa.StructArray):
        parts = (_sizes(array.field(at)) for at in range(array.type.num_fields))
        return sum(parts, np.zeros(len(array), np.int64))
    if isinstance(array, _LISTS):
        ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(_sizes(array.values))])[array.offsets.to_numpy()]
        found = ends[1:] - ends[:-1]
        return found
    if isinstance(array, pa.FixedSizeListArray):
        each = array.type.list_size
        found = _sizes(array.values)[array.offset * each :][: len(array) * each]
        found = found.reshape(len(array), each).sum(axis=1)
        return found
    if isinstance(array, _BINARY):
        found = pc.binary_length(array).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        return found
    return np.full(len(array), -(-array.nbytes // max(1, len(array))), np.int64)


def _taken(sizes: Sizes, indices: pa.Array) -> Sizes:
    positions = indices.cast(pa.int64()).fill_null(len(sizes)).to_numpy(zero_copy_only=False)
    found: Sizes = np.append(sizes, 0)[positions]
    return found


def _without_views(kind: pa.DataType) -> pa.DataType:
    """The type with plain strings instead of views, to which Arrow does not cast dictionaries."""
    if pa.types.is_string_view(kind):
        return pa.large_string()
    if pa.types.is_binary_view(kind):
        return pa.large_binary()
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_without_views(field.type)) for field in kind])
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        inner = kind.value_field.with_type(_without_views(kind.value_type))
        return pa.list_(inner) if pa.types.is_list(kind) else pa.large_list(inner)
    return kind
