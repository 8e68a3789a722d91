"""Compares how arrays and archives are streamed with the libraries that were rejected: ijson and stream-unzip.

Both sides read the same bytes in the same blocks. Beside speed, the comparison shows the effect of a damaged element,
or of an unneeded member, on the rest of the file.
"""

from __future__ import annotations

import argparse
import io
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from random import Random
from typing import Any

import ijson
import msgspec
from stream_unzip import stream_unzip

from memstate_core.ingest.containers.json_array import array_rows
from memstate_core.ingest.containers.zip_archive import Archive
from memstate_core.ingest.raw_rows import BrokenContainer

BLOCK = 1 << 20
LONGEST = 16 << 20


def blocks(data: bytes) -> Iterator[bytes]:
    """The bytes as a file gives them."""
    return (data[at : at + BLOCK] for at in range(0, len(data), BLOCK))


def conversations(count: int, seed: int) -> bytes:
    """A JSON array of nested conversations, as exports hold them."""
    chance = Random(seed)
    words = ["time", "köln", "and", "renewal", "of", "the", "next", "station", "brack]et", "com,ma", 'quo"te', "line\n"]
    found = []
    for at in range(count):
        texts = [" ".join(chance.choices(words, k=40)) for _ in range(10)]
        nodes = {f"n{place}": {"message": {"content": {"parts": [text]}}} for place, text in enumerate(texts)}
        found.append({"id": at, "mapping": nodes, "time": at / 7})
    return msgspec.json.encode(found)


def split_by_us(data: bytes) -> list[Any]:
    """Elements found by our splitter, each decoded on its own; None for one that is broken."""
    return [_decoded(row.raw) for row in array_rows(blocks(data), LONGEST)]


def _decoded(raw: bytes) -> Any:
    try:
        return msgspec.json.decode(raw)
    except msgspec.DecodeError:
        return None


def split_by_ijson(data: bytes) -> list[Any]:
    """Elements as ijson's fastest back end gives them, up to the first error."""
    found: list[Any] = []
    with suppress(ijson.JSONError):
        found.extend(ijson.items(io.BytesIO(data), "item", use_float=True, buf_size=BLOCK))
    return found


def archive(members: dict[str, bytes]) -> bytes:
    """A zip file of these members."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as made:
        for name, data in members.items():
            made.writestr(name, data)
    return file.getvalue()


def member_by_us(data: bytes, name: str) -> int:
    """The bytes of one member, found by the list of members."""
    return sum(map(len, Archive(io.BytesIO(data)).blocks(name)))


def member_by_stream(data: bytes, name: str) -> int:
    """The bytes of one member, found by unpacking all before it, since a stream has no list of members."""
    for found, _, unpacked in stream_unzip(blocks(data)):
        size = sum(map(len, unpacked))
        if found.decode() == name:
            return size
    return 0


def is_refused(read: Callable[[bytes, str], int], data: bytes, name: str) -> str:
    """The result for an archive that looks like a zip bomb."""
    try:
        return f"read {read(data, name) >> 20:,} MiB"
    except BrokenContainer:
        return "refused before a byte is unpacked"


def timed(read: Callable[[], Any], repeat: int = 3) -> float:
    """The least processor seconds of several readings."""
    found = []
    for _ in range(repeat):
        began = time.process_time()
        read()
        found.append(time.process_time() - began)
    return min(found)


def main(given: Sequence[str] | None = None) -> None:
    """Prints the results of both sides for the same files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--conversations", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=7)
    args = parser.parse_args(given)
    whole = conversations(args.conversations, args.seed)
    size = len(whole) / (1 << 20)
    broken = whole.replace(b'"id":3,', b'"id":NaN,', 1)
    assert split_by_us(whole) == split_by_ijson(whole)
    print(f"ijson's back end: {ijson.backend}; an array of {size:.0f} MiB\n")
    print("| array | MiB/s | elements after a broken fourth one |\n|---|---|---|")
    for name, split in (("ours, then msgspec", split_by_us), ("ijson", split_by_ijson)):
        speed, kept = size / timed(lambda split=split: split(whole)), len(split(broken))  # type: ignore[misc]
        print(f"| {name} | {speed:.0f} | {max(0, kept - 4):,} of {args.conversations - 4:,} |", flush=True)
    packed = archive({"media/a.bin": Random(args.seed).randbytes(64 << 20), "conversations.json": whole})
    bomb = archive({"conversations.json": bytes(256 << 20)})
    print(
        "\n| zip | seconds to the second member, behind one of 64 MiB | a member of 256 MiB of zeros |\n|---|---|---|"
    )
    for name, read in (("ours, over zipfile", member_by_us), ("stream-unzip", member_by_stream)):
        seconds = timed(lambda read=read: read(packed, "conversations.json"))  # type: ignore[misc]
        print(f"| {name} | {seconds:.2f} | {is_refused(read, bomb, 'conversations.json')} |", flush=True)


if __name__ == "__main__":
    main()
