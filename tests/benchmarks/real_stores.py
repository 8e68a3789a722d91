"""Benchmarks on stores of labelled records: imports, real nights, which records are one topic after them, tables."""

from __future__ import annotations

import argparse
import gzip
import tempfile
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl
from labelled import Labelled, read
from scoring import Result

from memstate_core.embed.encoder import Encoder
from memstate_core.ingest.importer import import_paths
from memstate_core.run.store import Store
from memstate_core.state.current import current_snapshot

BEGIN = datetime(2026, 1, 2, tzinfo=UTC)


def day(number: int) -> datetime:
    """The time of a night, the first has number 0."""
    return BEGIN + timedelta(days=number)


def lines_of(directory: Path) -> list[str]:
    """The lines of `observations.jsonl` or `.jsonl.gz`."""
    file = directory / "observations.jsonl"
    text = file.read_text() if file.exists() else gzip.decompress(Path(f"{file}.gz").read_bytes()).decode()
    return text.splitlines()


def import_lines(store: Store, lines: list[str], night: int) -> None:
    """Imports observations on the day of a night."""
    dump = store.home.root / f"part-{night}.jsonl"
    dump.write_text("\n".join(lines) + "\n")
    import_paths(store.ledger, store.settings, [dump], now=day(night), run_id=dump.stem)


def record_topics(store: Store) -> pl.DataFrame:
    """The topic of each record that has arrived (columns id, topic_id)."""
    evidence = store.ledger.scan("evidence").select("evidence_id", id="observation_id").collect()
    links = [
        pl.read_parquet(snapshot.path / "evidence.parquet", columns=["evidence_id", "topic_id"])
        for shard in store.shards
        if (snapshot := current_snapshot(store.home, shard)) is not None
    ]
    return evidence.join(pl.concat(links), on="evidence_id").select("id", "topic_id")


def groups(store: Store, labelled: Labelled) -> np.typing.NDArray[np.int64]:
    """The number of each record's topic; records that have not arrived are alone (records,)."""
    topics = record_topics(store)
    known = labelled.corpus.topics.select("id").join(topics, on="id", how="left", maintain_order="left")
    return known.select((pl.coalesce("topic_id", "id").rank("dense") - 1).cast(pl.Int64)).to_series().to_numpy()


def over_directories(description: str) -> argparse.ArgumentParser:
    """The arguments of a benchmark of labelled directories; it adds its own."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("directories", type=Path, nargs="+", metavar="DIR", help="observations.jsonl[.gz], pairs.csv")
    return parser


def print_table(
    directories: Sequence[Path], counted: str, measured: Callable[[Path, Labelled], Iterable[tuple[int, Result]]]
) -> None:
    """Prints a table with lines for each directory, as they are measured.

    Args:
        directories: the labelled sets.
        counted: the title of the column with the count.
        measured: yields counts and the merged pairs at each.
    """
    print(f"| set | {counted} | merged pairs | precision | recall | F1 |\n|---|---|---|---|---|---|", flush=True)
    encoder = Encoder()
    with tempfile.TemporaryDirectory() as scratch:
        for directory in directories:
            labelled = read(directory, encoder, Path(scratch) / "embeddings.sqlite")
            for count, result in measured(directory, labelled):
                rates = " | ".join(f"{rate:.3f}" for rate in (result.precision, result.recall, result.f1))
                print(f"| {directory.resolve().name} | {count} | {result.pairs:,} | {rates} |", flush=True)
