"""What the first night of a shard costs on a machine: with the whole store fetched, and with its own snapshots alone.

The store has made-up topics in scopes of equal size, encoded by `hashing`, and lies in a folder that is its URL. Each
round makes the night of the first shard in two new homes, whole and bounded (`store.checkout_mib`) in turn, after a day
on which topics changed. Bytes are those that were fetched, and those of the home at the end.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

from changed_nights import change, made
from skipped_nights import latest

from memstate_core.model.text import iso
from memstate_core.run.store import open_store
from memstate_core.state.sizes import size_of
from memstate_core.storage.objects import Objects
from memstate_pipeline.resources import NOW_TAG
from memstate_pipeline.run import maintain, night_of

KINDS = {"the whole store": "0", "the shard alone": "1"}
"""The bound of each kind of home, in MiB: the shard of a night is there in spite of it."""
Cost = tuple[float, float, float, float]
"""Wall and CPU seconds, bytes fetched, bytes on the disk."""


def night(home: Path, settings: Path, shard: str, now: str, bound: str) -> Cost:
    """The night of a shard in a new home."""
    home.mkdir()
    shutil.copy(settings, home)
    fetched, fetch = list[int](), Objects.fetch

    def counted(self: Objects, sha256: str, target: Path) -> str | None:
        problem = fetch(self, sha256, target)
        fetched.append(target.stat().st_size)
        return problem

    with patch.object(Objects, "fetch", counted), patch.dict(os.environ, {"MEMSTATE_STORE_CHECKOUT_MIB": bound}):
        wall, cpu = time.perf_counter(), time.process_time()
        night_of(home, {NOW_TAG: now}, shard)
        return time.perf_counter() - wall, time.process_time() - cpu, sum(fetched), size_of(home)


def measured(origin: Path, folder: Path, changes: int, rounds: int) -> dict[str, list[Cost]]:
    """The costs of nights in new homes, by kind."""
    found: dict[str, list[Cost]] = {kind: [] for kind in KINDS}
    with patch.dict(os.environ, {"MEMSTATE_STORE_URL": f"file://{folder}/url", "MEMSTATE_STORE_NIGHTS_AT_ONCE": "2"}):
        store = open_store(origin)
        now = latest(store) + timedelta(days=1)
        with patch.dict(os.environ, {"MEMSTATE_STORE_NIGHTS_AT_ONCE": "1"}):
            change(store, changes, now.toordinal(), iso(now))
            maintain(open_store(origin), now)  # sends the store
        for number in range(rounds):
            for kind, bound in KINDS.items():
                now += timedelta(days=1)
                home = folder / f"{number}-{bound}"
                found[kind].append(night(home, origin / "memstate.toml", store.shards[0], iso(now), bound))
                shutil.rmtree(home)
    return found


def report(found: dict[str, list[Cost]]) -> str:
    """The table of medians, and their ratio."""
    medians = {kind: [statistics.median(each) for each in zip(*costs, strict=True)] for kind, costs in found.items()}
    lines = ["| a new home has | wall, s | CPU, s | fetched, MiB | on disk, MiB |", "|---|---|---|---|---|"]
    for kind, (wall, cpu, fetched, disk) in medians.items():
        lines.append(f"| {kind} | {wall:.1f} | {cpu:.1f} | {fetched / (1 << 20):,.1f} | {disk / (1 << 20):,.1f} |")
    whole, bounded = medians.values()
    ratios = [f"{own / all_of_it:.2f}" for own, all_of_it in zip(bounded, whole, strict=True)]
    return "\n".join([*lines, f"| ratio | {' | '.join(ratios)} |"])


def main(given: Sequence[str] | None = None) -> None:
    """Makes the store unless it is there, runs the nights and prints the table."""
    parser = argparse.ArgumentParser(description="Measure the first night of a shard on a machine.")
    parser.add_argument("home", type=Path)
    parser.add_argument("--shards", type=int, default=16)
    parser.add_argument("--topics", type=int, default=1_000, help="topics of a shard")
    parser.add_argument("--changes", type=int, default=20, help="topics of a shard that changed")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args(given)
    topics = args.topics * args.shards
    made(args.home, topics, max(args.shards, topics // 100), args.shards)
    with TemporaryDirectory(dir=args.home.parent) as scratch:
        found = measured(args.home, Path(scratch), args.changes * args.shards, args.rounds)
    sys.stdout.write(report(found) + "\n")


if __name__ == "__main__":
    main()
