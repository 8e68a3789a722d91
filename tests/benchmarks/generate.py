"""Writes synthetic dumps of any size, for benchmarks.

Two kinds: structured observations, where topics of Zipf-like popularity have fields that change over time
and edges to others of their scope (`made_observations.py`), and, with `--turns`, chats that move from subject to
subject (`made_chats.py`). Nothing here measures anything. The one invariant: the same arguments give the same bytes.
"""

from __future__ import annotations

import argparse
import gzip
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO, cast

import made_chats
import made_observations
import polars as pl
import zstandard
from drawing import END, Spec

__all__ = ["END", "Spec", "main", "observation_chunks", "turn_chunks"]

CHUNK_ROWS = 200_000


def observation_chunks(spec: Spec) -> Iterator[pl.Series]:
    """The lines of a structured dump, in order of arrival, a chunk at a time."""
    topics = made_observations.topics(spec)
    for part in made_observations.visits(spec).iter_slices(CHUNK_ROWS):
        yield made_observations.lines(part, topics, spec)


def turn_chunks(spec: Spec) -> Iterator[pl.Series]:
    """The lines of a chat dump, session by session, a chunk at a time."""
    for part in made_chats.turns(spec).iter_slices(CHUNK_ROWS):
        yield made_chats.lines(part, spec)


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """The file to write to, compressed as its name says; no time stamp goes in, so equal runs stay equal."""
    with path.open("wb") as plain:
        if path.suffix == ".gz":
            with gzip.GzipFile(filename="", mode="wb", compresslevel=3, fileobj=plain, mtime=0) as packed:
                yield cast("BinaryIO", packed)
        elif path.suffix == ".zst":
            with zstandard.ZstdCompressor().stream_writer(plain) as packed:
                yield cast("BinaryIO", packed)
        else:
            yield plain


def _arguments(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Write a made-up dump for benchmarks; the same arguments give the same bytes."
    )
    parser.add_argument("out", type=Path, metavar="OUT", help="file to write: .jsonl, .jsonl.gz or .jsonl.zst")
    parser.add_argument("--observations", type=int, default=100_000, help="structured observations")
    parser.add_argument(
        "--topics", type=int, default=20_000, help="topics that they are about, at most one per observation"
    )
    parser.add_argument("--scopes", type=int, default=4, help="scopes that the topics, or sessions, are spread over")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--turns", type=int, help="write so many turns of chats instead of observations")
    found = parser.parse_args(given)
    counts = (found.topics, found.observations) if found.turns is None else (1, found.turns)
    if not all(low <= high for low, high in pairwise((1, *counts))) or found.scopes < 1 or found.seed < 0:
        parser.error("expected 1 <= topics <= observations, at least 1 turn and 1 scope, and a seed of 0 or more")
    return found


def main(given: Sequence[str] | None = None) -> None:
    """Writes the dump that the arguments ask for."""
    args = _arguments(given)
    spec = Spec(args.turns or args.observations, args.topics, args.scopes, args.seed)
    chunks = turn_chunks(spec) if args.turns else observation_chunks(spec)
    with _opened(args.out) as file:
        for lines in chunks:
            file.write("".join(lines.to_list()).encode())
    print(f"{spec.rows} rows written to {args.out}")


if __name__ == "__main__":
    main()
