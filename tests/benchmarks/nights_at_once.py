"""What nights of several shards gain side by side: the same store, with one, two and more of them at a time.

The store has made-up topics in scopes of equal size, encoded by `hashing`. Before each night topics of all shards
change, so that every shard has work to do. The nights follow each other on one store, with each number of them in turn,
so that growth is shared out. Efficiency is the time with one at a time over that with N, by N or the cores, whichever
is less. CPU is that of all processes.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import sys
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from unittest.mock import patch

from changed_nights import change, made
from skipped_nights import latest

from memstate_core.run.store import open_store
from memstate_pipeline.run import maintain

Cost = tuple[float, float]
"""Wall and CPU seconds."""


def cpu_seconds() -> float:
    """CPU seconds of this process and of those that it started and that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def night(home: Path, changes: int, at_once: int, url: str) -> Cost:
    """The next night after a day on which topics of all shards change."""
    store = open_store(home)
    now = latest(store) + timedelta(days=1)
    change(store, changes, now.toordinal(), now.isoformat())
    given = {"MEMSTATE_STORE_NIGHTS_AT_ONCE": str(at_once)} | ({"MEMSTATE_STORE_URL": url} if url else {})
    with patch.dict(os.environ, given):
        wall, cpu = time.perf_counter(), cpu_seconds()
        maintain(open_store(home), now)
        return time.perf_counter() - wall, cpu_seconds() - cpu


def measured(home: Path, changes: int, numbers: Sequence[int], rounds: int, url: str) -> dict[int, list[Cost]]:
    """The costs of nights with each number of them at once."""
    found: dict[int, list[Cost]] = {each: [] for each in numbers}
    night(home, changes, 1, url)  # has nothing to catch up on after this, and sends the store to the URL
    for _ in range(rounds):
        for at_once in numbers:
            found[at_once].append(night(home, changes, at_once, url))
    return found


def report(found: dict[int, list[Cost]], shards: int) -> str:
    """The table of medians."""
    cores = os.cpu_count() or 1
    medians = {n: [statistics.median(each) for each in zip(*costs, strict=True)] for n, costs in found.items()}
    alone = next(iter(medians.values()))[0]
    lines = [f"| nights at once, of {shards} | wall, s | CPU, s | faster | efficiency |", "|---|---|---|---|---|"]
    for at_once, (wall, cpu) in medians.items():
        gain = alone / wall
        lines.append(f"| {at_once} | {wall:.1f} | {cpu:.1f} | {gain:.2f} | {gain / min(at_once, cores):.2f} |")
    return "\n".join(lines)


def main(given: Sequence[str] | None = None) -> None:
    """Makes the store unless it is there, runs the nights and prints the table."""
    parser = argparse.ArgumentParser(description="Measure nights of several shards side by side.")
    parser.add_argument("home", type=Path)
    parser.add_argument("--shards", type=int, default=16)
    parser.add_argument("--topics", type=int, default=5_000, help="topics of a shard")
    parser.add_argument("--changes", type=int, default=100, help="topics of a shard that change before a night")
    parser.add_argument("--at-once", type=int, nargs="+", default=[1, 2, 4], help="others are compared with the first")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--url", default="", help="an empty place for the store; default: the home itself")
    args = parser.parse_args(given)
    topics = args.topics * args.shards
    made(args.home, topics, max(args.shards, topics // 400), args.shards)
    found = measured(args.home, args.changes * args.shards, args.at_once, args.rounds, args.url)
    sys.stdout.write(report(found, args.shards) + "\n")


if __name__ == "__main__":
    main()
