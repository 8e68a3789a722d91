"""Observations as JSON Lines, one JSON array or one object. Content that no reader recognises is read this way, too.

A file named .jsonl or .ndjson is read as JSON Lines, whatever its first line is.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from memstate_core.ingest.api_files import is_header
from memstate_core.ingest.containers.compression import MAGIC
from memstate_core.ingest.containers.json_array import array_rows
from memstate_core.ingest.containers.sniff import BOM, begins_pretty
from memstate_core.ingest.containers.source import Source
from memstate_core.ingest.formats.shared.base import Reader, Reading
from memstate_core.ingest.raw_rows import BrokenContainer, RawRow, line_rows

EXPECTED = "observations as JSON Lines, one JSON array (either as .gz or .zst too) or parquet"
_SAID = {"observation_id", "text", "topic_id", "topic_key", "fields", "edges"}


def _recognises(source: Source) -> bool:
    return source.archive is None and any(_SAID & found.keys() for found in source.members[0].objects)


def _rows(source: Source, reading: Reading) -> Iterator[RawRow]:
    blocks = source.members[0].blocks()
    layout = _layout(source.path)
    first = next(blocks, b"").removeprefix(BOM)
    if layout not in (".jsonl", ".ndjson"):
        if layout != ".json" and b"\0" in first:
            raise BrokenContainer(f"it holds binary data of no known format, expected {EXPECTED}, or a chat export")
        if first.lstrip().startswith(b"["):
            return array_rows(chain((first,), blocks), reading.longest)
        if begins_pretty(first.lstrip()):
            return array_rows(chain((b"[", first), blocks, (b"]",)), reading.longest)
    rows = line_rows(chain((first,), blocks), reading.longest)
    head = next(rows, None)
    return rows if head is None or is_header(head.raw) else chain((head,), rows)


def _layout(path: Path) -> str:
    """The suffix of the row format, without the suffix of the compression."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    return next((suffix for suffix in reversed(suffixes) if suffix not in MAGIC), "")


READER = Reader(EXPECTED, _recognises, _rows)
