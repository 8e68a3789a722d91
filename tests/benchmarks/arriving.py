"""Duplicates of records that arrive in parts, with a night after each part, beside one night for all of them.

Every night is a real run of `memstate maintain` on a store of its own. The parts are drawn at random.
"""

from __future__ import annotations

import argparse
import gzip
import random
import tempfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl
from labelled import Labelled, read
from scoring import Result

from memstate_core.embed.encoder import Encoder
from memstate_core.ingest.importer import import_paths
from memstate_core.run.store import Store, open_store
from memstate_core.state.current import current_snapshot
from memstate_pipeline.run import maintain

BEGIN = datetime(2026, 1, 2, tzinfo=UTC)


def nights(directory: Path, labelled: Labelled, parts: int, seed: int) -> Iterator[Result]:
    """The merged pairs after each night.

    Args:
        directory: has `observations.jsonl` or `.jsonl.gz`.
        labelled: the same records with their labels.
        parts: into how many parts the records are divided.
        seed: of the order in which they arrive.
    """
    lines = _lines(directory)
    random.Random(seed).shuffle(lines)
    with tempfile.TemporaryDirectory() as home:
        store = open_store(Path(home), {})
        for number in range(parts):
            part = lines[number * len(lines) // parts : (number + 1) * len(lines) // parts]
            now = BEGIN + timedelta(days=number)
            dump = Path(home) / f"part-{number}.jsonl"
            dump.write_text("\n".join(part) + "\n")
            import_paths(store.ledger, store.settings, [dump], now=now, run_id=dump.stem)
            maintain(store, now)
            yield labelled.labels.judged_groups(_groups(store, labelled))


def _lines(directory: Path) -> list[str]:
    file = directory / "observations.jsonl"
    text = file.read_text() if file.exists() else gzip.decompress(Path(f"{file}.gz").read_bytes()).decode()
    return text.splitlines()


def _groups(store: Store, labelled: Labelled) -> np.typing.NDArray[np.int64]:
    """The number of each record's topic; records that have not arrived are alone (records,)."""
    evidence = store.ledger.scan("evidence").select("evidence_id", id="observation_id").collect()
    links = [
        pl.read_parquet(snapshot.path / "evidence.parquet", columns=["evidence_id", "topic_id"])
        for shard in store.shards
        if (snapshot := current_snapshot(store.home, shard)) is not None
    ]
    topics = evidence.join(pl.concat(links), on="evidence_id").select("id", "topic_id")
    known = labelled.corpus.topics.select("id").join(topics, on="id", how="left", maintain_order="left")
    return known.select((pl.coalesce("topic_id", "id").rank("dense") - 1).cast(pl.Int64)).to_series().to_numpy()


def report(name: str, directory: Path, labelled: Labelled, parts: Sequence[int], seed: int) -> str:
    """The section of one set: a line for each number of parts, after the last night."""
    lines = [f"| {name} |  |  |  |  |  |"]
    for count in parts:
        *_, last = nights(directory, labelled, count, seed)
        rates = " | ".join(f"{rate:.3f}" for rate in (last.precision, last.recall, last.f1))
        lines.append(f"| | {count} | {last.pairs:,} | {rates} |")
    return "\n".join(lines)


def _arguments(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Merge records that arrive in parts, one night each.")
    parser.add_argument("directories", type=Path, nargs="+", metavar="DIR", help="observations.jsonl[.gz], pairs.csv")
    parser.add_argument("--parts", type=int, nargs="+", default=[1, 2, 5], help="numbers of parts to compare")
    parser.add_argument("--seed", type=int, default=3, help="of the order in which records arrive")
    return parser.parse_args(given)


def main(given: Sequence[str] | None = None) -> None:
    """Prints a table with a section for each directory."""
    args, encoder = _arguments(given), Encoder()
    print("| set | nights | merged pairs | precision | recall | F1 |\n|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        for directory in args.directories:
            labelled = read(directory, encoder, Path(scratch) / "embeddings.sqlite")
            name = directory.resolve().name
            print(report(name, directory, labelled, args.parts, args.seed), flush=True)


if __name__ == "__main__":
    main()
