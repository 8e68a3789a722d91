"""What a change of the number of shards costs beside `memstate rebuild` of the same store.

A store of generated observations is filled by one import and one night, by the model `hashing`, which loads nothing.
Then in this process and in turn: `rebuild` of its one shard, `reshard` to several, `rebuild` of these, and `reshard`
back. The state hash of the one shard has to be the same at the end. CPU is that of this process.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import generate

from memstate_core.ingest.importer import import_paths
from memstate_core.night.rebuild import rebuild
from memstate_core.night.resharding.reshard import reshard
from memstate_core.run.served_state import read_served
from memstate_core.run.store import Store, open_store
from memstate_core.state.current import served
from memstate_pipeline.run import maintain
from memstate_pipeline.writers import holding

Measured = tuple[str, float, float]
"""What was done, seconds of wall clock and of CPU."""
OBSERVATIONS_A_TOPIC = 3


def made(home: Path, topics: int, scopes: int) -> Store:
    """A store with one night."""
    home.mkdir(parents=True, exist_ok=True)
    (home / "memstate.toml").write_text('[store]\nniceness = 0\n[embedding]\nmodel = "hashing"\n')
    dump, rows = home / "dump.jsonl", str(topics * OBSERVATIONS_A_TOPIC)
    generate.main([str(dump), "--observations", rows, "--topics", str(topics), "--scopes", str(scopes), "--seed", "7"])
    store = open_store(home)
    import_paths(store.ledger, store.settings, [dump], now=generate.END, run_id="made")
    maintain(store, generate.END)
    return store


def timed(name: str, work: Callable[[], object]) -> Measured:
    """Does some work under the store's lock."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return name, time.perf_counter() - wall, time.process_time() - cpu


def measured(store: Store, shards: int) -> list[Measured]:
    """Rebuilds and changes in turn; both directions give the state that the store had."""
    hashes = [snapshot.manifest.state_hash for snapshot in served(store.home, store.shards)]
    found = [timed("rebuild, 1 shard", lambda: rebuilt(store))]
    found.append(timed(f"reshard 1 → {shards}", lambda: changed(store, shards)))
    found.append(timed(f"rebuild, {shards} shards", lambda: rebuilt(store)))
    found.append(timed(f"reshard {shards} → 1", lambda: changed(store, 1)))
    assert [snapshot.manifest.state_hash for snapshot in served(store.home, store.shards)] == hashes
    return found


def rebuilt(store: Store) -> None:
    """What `memstate rebuild` does."""
    with holding(open_store(store.home.root), "rebuild"):
        for shard in store.shards:
            rebuild(store, shard, f"rebuild-{time.time_ns()}")


def changed(store: Store, shards: int) -> None:
    """What `memstate reshard` does."""
    with holding(open_store(store.home.root), "reshard"):
        reshard(store, read_served(store), shards)


def report(found: Sequence[Measured], topics: int, scopes: int) -> str:
    """The table."""
    lines = [f"| {topics:,} topics in {scopes} scopes | wall, s | CPU, s |", "|---|---|---|"]
    return "\n".join([*lines, *(f"| {name} | {wall:.1f} | {cpu:.1f} |" for name, wall, cpu in found)])


def main(given: Sequence[str] | None = None) -> None:
    """Makes the store, measures and prints the table."""
    parser = argparse.ArgumentParser(description="Measure changes of the number of shards.")
    parser.add_argument("--topics", type=int, default=50_000)
    parser.add_argument("--scopes", type=int, default=50)
    parser.add_argument("--shards", type=int, default=4)
    args = parser.parse_args(given)
    with TemporaryDirectory() as scratch:
        store = made(Path(scratch) / "home", args.topics, args.scopes)
        counts = [snapshot.manifest.counts for snapshot in served(store.home, store.shards)]
        topics = sum(count["active"] + count["archived"] + count["merged"] for count in counts)
        print(report(measured(store, args.shards), topics, args.scopes))


if __name__ == "__main__":
    main()
