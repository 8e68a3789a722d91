"""The first load of a store: from JSONL to the published snapshot, beside raw COPY of the final tables into Kuzu."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import generate
from changed_nights import SETTINGS
from measures import Measure

from memstate_core.ingest.importer import import_paths
from memstate_core.run.run import GRAPH_FILE
from memstate_core.run.store import Store, open_store
from memstate_core.state.current import served
from memstate_core.state.graph import EDGE, NODE_TABLES, open_graph
from memstate_core.state.snapshots import Snapshot
from memstate_pipeline.run import maintain

FASTEST, MOST_TIMES = 10_000, 6


def measured(folder: Path, observations: int, topics: int, scopes: int, shards: int = 1) -> list[Measure]:
    """Observations a second of a first load, and its time as a multiple of that of the copies alone.

    Args:
        folder: for the dump, the store and the copy of its graphs; they are removed.
        observations: how many rows are loaded.
        topics: of how many topics they are.
        scopes: of how many scopes these are.
        shards: of how many shards.
    """
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        home, dump = Path(scratch) / "home", Path(scratch) / "dump.jsonl"
        home.mkdir()
        (home / "memstate.toml").write_text(SETTINGS.format(shards=shards))
        size = ["--observations", str(observations), "--topics", str(topics), "--scopes", str(scopes)]
        generate.main([str(dump), *size, "--seed", "7"])
        store = open_store(home, {})
        importing, night = _loaded(store, dump)
        copying = sum(_copied(each, Path(scratch)) for each in served(store.home, store.shards))
    named = f"{observations:,} rows of {topics:,} topics in {scopes} scopes"
    return [
        Measure(f"{named}: JSONL to snapshot", observations / (importing + night), "rows/s", least=FASTEST),
        Measure(f"{named}: against raw COPY", (importing + night) / copying, "times", most=MOST_TIMES),
        Measure(f"{named}: import", importing, "s"),
        Measure(f"{named}: night", night, "s"),
        Measure(f"{named}: raw COPY", copying, "s"),
    ]


def _loaded(store: Store, dump: Path) -> tuple[float, float]:
    """Seconds of the import and of the first night."""
    began = time.perf_counter()
    import_paths(store.ledger, store.settings, [dump], now=generate.END, run_id="first-load")
    imported = time.perf_counter()
    maintain(store, generate.END)
    return imported - began, time.perf_counter() - imported


def _copied(snapshot: Snapshot, folder: Path) -> float:
    """Seconds in which the tables of a snapshot are copied into an empty graph and written to disk."""
    with open_graph(snapshot.path / GRAPH_FILE, read_only=True) as graph:
        tables = [(table, graph.read(table)) for table in (*NODE_TABLES, EDGE)]
    path = folder / f"{snapshot.manifest.shard}.kuzu"
    began = time.perf_counter()
    with open_graph(path) as graph:
        for table, rows in tables:
            graph.insert(table, rows)
    return time.perf_counter() - began


def main(given: Sequence[str] | None = None) -> None:
    """Loads a store and prints the figures."""
    parser = argparse.ArgumentParser(description="Measure a first load beside raw COPY of its tables into Kuzu.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--observations", type=int, default=500_000)
    parser.add_argument("--topics", type=int, default=100_000)
    parser.add_argument("--scopes", type=int, default=10)
    parser.add_argument("--shards", type=int, default=1)
    args = parser.parse_args(given)
    args.folder.mkdir(parents=True, exist_ok=True)
    for each in measured(args.folder, args.observations, args.topics, args.scopes, args.shards):
        sys.stdout.write(f"{each.name}: {each.shown} {each.unit}\n")


if __name__ == "__main__":
    main()
