"""A model of many stores: what the nights of a fleet cost, by costs that were measured on one machine.

    python tests/benchmarks/fleet.py --scopes 100000000 --topics-a-scope 100 --shards 10000

Scopes are hashed to shards by the function of the store, and their sizes are drawn from a heavy-tailed distribution, so
shards differ in size. Each store has one writer, its lease, so its shards are worked on in turn; free workers take the
stores whose night is due, the largest first. With `--at-once` (`store.nights_at_once`) workers take shards, and those
of a store are in turn for a share of their time alone. Nothing is measured here but the schedule: what a night, a byte
and a request cost are inputs, with the section of README.md that each is from.
"""

from __future__ import annotations

import argparse
import heapq
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from memstate_core.model.scope import Layout

Array = npt.NDArray[np.float64]
HOUR, GIB = 3600.0, 2.0**30
_HASHED = 200_000
"""Scopes that are hashed one by one; more of them are drawn as if they were hashed."""
_TAIL = 1.6
"""Exponent of the sizes of scopes: of a Pareto distribution whose mean is finite and whose variance is not."""


@dataclass(frozen=True)
class Costs:
    """Costs of a night of one shard, with encoding left out.

    Attributes:
        fixed: CPU seconds of a night of a few rows ("Questions and start-up").
        topic: CPU seconds a topic of the shard, changed or not ("Nights with changes", 202,341 topics, 68.9 s).
        searched: CPU seconds a topic of each scope that has a change, mostly the search for duplicates (the same; 88 s
            for 80 scopes of 1,000 topics, and a fifth less since).
        memory: bytes of resident memory a topic at the most (the same; 4,940 MiB).
        memory_fixed: bytes of a process that has loaded everything.
        stored: bytes of a snapshot a topic ("A million topics").
        sent: bytes that a night sends a topic: the graph, and the vectors beside it (the same).
        events: rows in Dagster's event log (counted in the history of four nights: 191).
        requests: requests of a night of a store at a URL, for parts of at most 4 MiB ("Nights of a store at a URL").
        turn: the share of a shard's night in which it holds its whole store ("Nights at once").
        opening: seconds in which a server opens a topic ("Serving"; 12 s for 202,892).
        fetching: bytes a second from object storage to a machine; assumed.
        scheduled: CPU seconds in which Dagster's daemon and code server submit a run and take it from the queue, one
            after another ("The scheduler", with the history in PostgreSQL).
    """

    fixed: float = 1.0
    topic: float = 68.9 / 202_341
    searched: float = 0.8 * 88.0 / 80_000
    memory: float = 4_940 * 2**20 / 202_341
    memory_fixed: float = 0.4 * GIB
    stored: float = 13_700.0
    sent: float = 9_500.0
    events: int = 191
    requests: int = 56
    turn: float = 0.2
    opening: float = 12.0 / 202_892
    fetching: float = 200e6
    scheduled: float = 44.8 / 256


@dataclass(frozen=True)
class Fleet:
    """The shards of all stores.

    Attributes:
        topics: of each shard (n).
        searched: topics in scopes with a change, of each shard (n).
        shards_a_store: consecutive shards that share a store, and so a writer.
        at_once: whether shards of a store have their nights side by side.
    """

    topics: Array
    searched: Array
    shards_a_store: int
    at_once: bool = False


def drawn(scopes: int, topics_a_scope: float, shards: int, changed: float, shards_a_store: int, seed: int) -> Fleet:
    """A fleet whose scopes are hashed to shards.

    Args:
        scopes: how many scopes there are.
        topics_a_scope: their mean size.
        shards: how many shards there are.
        changed: the share of scopes with a change in a night.
        shards_a_store: how many of them share a store.
        seed: of the sizes, and of the scopes that have changes.
    """
    rng = np.random.default_rng(seed)
    topics, searched = np.zeros(shards), np.zeros(shards)
    for first in range(0, scopes, 10_000_000):
        count = min(10_000_000, scopes - first)
        hashed = [int(Layout(shards).of(f"user:{first + each}")[1:]) for each in range(min(count, _HASHED))]
        homes = np.concatenate([np.array(hashed, np.intp), rng.integers(0, shards, count - len(hashed))])
        sizes = topics_a_scope * (_TAIL - 1) / _TAIL * (1 + rng.pareto(_TAIL, count))
        topics += np.bincount(homes, sizes, shards)
        searched += np.bincount(homes, sizes * (rng.random(count) < changed), shards)
    return Fleet(topics, searched, shards_a_store)


@dataclass(frozen=True)
class Night:
    """What one night of a fleet takes.

    Attributes:
        cpu: CPU seconds of all shards.
        ends: seconds from the tick to the end of the last store.
        longest: seconds of the longest store.
        waits: seconds until half of the stores have begun.
        running: the most runs at the same time.
    """

    cpu: float
    ends: float
    longest: float
    waits: float
    running: int


def night(fleet: Fleet, costs: Costs, workers: int, idle: bool = True) -> Night:
    """One night: all stores are due at the same tick; a worker has one processor.

    Args:
        fleet: the shards.
        costs: what they cost.
        workers: how many workers there are.
        idle: whether shards without a change have a night, too, as they do.
    """
    seconds = costs.fixed + costs.topic * fleet.topics + costs.searched * fleet.searched
    seconds = seconds if idle else np.where(fleet.searched > 0, seconds, 0.0)
    stores = np.add.reduceat(seconds, np.arange(0, len(seconds), fleet.shards_a_store))
    taken = seconds if fleet.at_once else stores
    longest = float(max(costs.turn * stores.max(), taken.max()) if fleet.at_once else stores.max())
    free = [0.0] * workers
    begun = []
    for length in np.sort(taken)[::-1]:
        at = heapq.heappop(free)
        begun.append(at)
        heapq.heappush(free, at + float(length))
    ends = max(*free, longest)
    return Night(float(seconds.sum()), ends, longest, float(np.median(begun)), min(workers, len(taken)))


def needed(fleet: Fleet, costs: Costs, window: float) -> int | None:
    """The fewest workers that end a night within a window; None if one store takes longer."""
    low, high = 0, len(fleet.topics)
    if night(fleet, costs, high).ends > window:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if night(fleet, costs, middle).ends <= window else (middle, high)
    return high


def report(fleet: Fleet, costs: Costs, window: float) -> str:
    """A table of what a fleet takes."""
    stores = -(-len(fleet.topics) // fleet.shards_a_store)
    total, largest = fleet.topics.sum(), fleet.topics.max()
    workers = needed(fleet, costs, window)
    found = night(fleet, costs, workers or len(fleet.topics))
    working = night(fleet, costs, workers or len(fleet.topics), idle=False)
    start = largest * (costs.stored / costs.fetching + costs.opening)
    rows = {
        "topics; largest shard": f"{total:,.0f}; {largest:,.0f}",
        "stores; shards of each": f"{stores:,}; {fleet.shards_a_store:,}",
        "CPU hours of a night": f"{found.cpu / HOUR:,.0f}",
        "CPU ms a topic": f"{1000 * found.cpu / total:.2f}",
        "of shards with a change": f"{working.cpu / HOUR:,.0f}",
        "longest store, hours": f"{found.longest / HOUR:.2f}",
        f"workers for {window / HOUR:.0f} hours": "none are enough" if workers is None else f"{workers:,}",
        "most runs at a time": f"{found.running:,}",
        "half of the stores have begun after, hours": f"{found.waits / HOUR:.2f}",
        "memory of the largest shard's night, GiB": f"{(costs.memory_fixed + costs.memory * largest) / GIB:,.1f}",
        "snapshots, TB": f"{costs.stored * total / 1e12:,.1f}",
        "sent in a night, TB": f"{costs.sent * total / 1e12:,.1f}",
        "requests to object storage a second": f"{costs.requests * len(fleet.topics) / window:,.1f}",
        "rows a second in Dagster's event log": f"{costs.events * len(fleet.topics) / window:,.1f}",
        "scheduler, s for a store": f"{costs.scheduled * fleet.shards_a_store:,.1f}",
        "were there one for all shards, hours": f"{costs.scheduled * len(fleet.topics) / HOUR:,.2f}",
        "cold start of a server of the largest shard, s": f"{start:,.0f}",
    }
    return "\n".join(f"| {name} | {value} |" for name, value in rows.items())


def options() -> argparse.ArgumentParser:
    """The fleet that is asked for."""
    parser = argparse.ArgumentParser(description="Model the nights of many stores.")
    parser.add_argument("--scopes", type=int, default=1_000_000)
    parser.add_argument("--topics-a-scope", type=float, default=100.0)
    parser.add_argument("--shards", type=int, default=1_000)
    parser.add_argument("--shards-a-store", type=int, default=1)
    parser.add_argument("--at-once", action="store_true", help="shards of a store have their nights side by side")
    parser.add_argument("--changed", type=float, default=0.1, help="the share of scopes with a change in a night")
    parser.add_argument("--hours", type=float, default=8.0, help="the window of a night")
    parser.add_argument("--seed", type=int, default=7)
    return parser


def main(given: Sequence[str] | None = None) -> None:
    """Draws a fleet and prints its table."""
    args = options().parse_args(given)
    fleet = drawn(args.scopes, args.topics_a_scope, args.shards, args.changed, args.shards_a_store, args.seed)
    fleet = replace(fleet, at_once=args.at_once)
    print("| what | value |\n|---|---|")
    print(report(fleet, Costs(), args.hours * HOUR))


if __name__ == "__main__":
    main()
