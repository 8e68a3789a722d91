"""Compression of dumps: plain, gzip, zstd, zip or Parquet, detected by the first bytes.

A file whose name has the suffix of a container (.gz, .zst, .zip, .parquet) must be one, since an export truncated to
nothing would otherwise look like an empty dump. A truncated file is an error, and so is a decompression bomb.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import zstandard

from memstate_core.ingest.raw_rows import BrokenContainer

MAGIC = {".gz": b"\x1f\x8b", ".zst": b"\x28\xb5\x2f\xfd", ".zip": b"PK\x03\x04", ".parquet": b"PAR1"}
"""The first bytes of each container, by suffix."""

UNPACK_ERRORS = (EOFError, zlib.error, zstandard.ZstdError)
BLOCK = 1 << 20
MAX_RATIO = 200
"""Largest allowed ratio of unpacked to packed size; text reaches about 20."""
RATIO_FROM_BYTES = 256 << 20
"""Up to this many unpacked bytes any ratio is allowed, since reading them takes seconds."""
_PACKED_BLOCK = 1 << 12


def packing_of(path: Path, file: BinaryIO) -> str | None:
    """The container of the file, as a key of MAGIC; None for plain text.

    Raises:
        BrokenContainer: the first bytes contradict the suffix.
    """
    head = file.read(4)
    file.seek(0)
    found = next((suffix for suffix, magic in MAGIC.items() if head.startswith(magic)), None)
    promised = path.suffix.lower()
    if promised in MAGIC and promised != found:
        begins = f"begins with {head!r}" if head else "is empty"
        raise BrokenContainer(f"its name ends in {promised}, but it {begins}, expected {MAGIC[promised]!r} first")
    return found


def unpacked(file: BinaryIO, packing: str | None) -> Iterator[bytes]:
    """The file's text in blocks of at most a megabyte.

    Raises:
        EOFError, OSError, zlib.error, ZstdError: the file is damaged, or ends early.
        BrokenContainer: likewise, or it unpacks to more than MAX_RATIO times its size.
    """
    if packing == ".gz":
        with gzip.GzipFile(fileobj=file) as unzipped:
            yield from _within_ratio(file, iter(lambda: unzipped.read1(BLOCK), b""))
    elif packing == ".zst":
        yield from _within_ratio(file, _unpacked_zstd(file))
    else:
        yield from iter(lambda: file.read(BLOCK), b"")


def _within_ratio(file: BinaryIO, blocks: Iterator[bytes]) -> Iterator[bytes]:
    """The unpacked blocks, as long as their size stays within MAX_RATIO of the bytes read of the file."""
    given = 0
    for block in blocks:
        given += len(block)
        if given > max(RATIO_FROM_BYTES, MAX_RATIO * file.tell()):
            found = f"its first {file.tell():,} bytes unpack to more than {given - len(block):,}"
            raise BrokenContainer(f"{found}, expected at most {MAX_RATIO} times as many: it looks like a bomb")
        yield block


def _unpacked_zstd(file: BinaryIO) -> Iterator[bytes]:
    """Unpacks frame by frame, since the library's stream reader accepts a truncated file.

    Four packed kilobytes hold at most 128 MiB, so input is read in small pieces.
    """
    frame = zstandard.ZstdDecompressor().decompressobj()
    while packed := file.read(_PACKED_BLOCK):
        while packed:
            if frame.eof:
                frame = zstandard.ZstdDecompressor().decompressobj()
            block = frame.decompress(packed)
            packed = frame.unused_data if frame.eof else b""
            yield from (block[at : at + BLOCK] for at in range(0, len(block), BLOCK))
    if not frame.eof:
        raise BrokenContainer("the compressed data ends before its end mark")
