"""What a night without a change costs with `schedule.skip_unchanged_days`: nothing changed, or topics of one shard.

The store has made-up topics in scopes of equal size, encoded by `hashing`. Every kind of night is run with a night of
each shard and with those that are skipped, a day after the last. The decision alone is measured once more as if every
scope were under pressure, where the ladder is asked about each topic. All figures are of one run in one process.
With `--only-skipping` nights of every shard are left out, but for the first two: of a million topics each takes
seven minutes.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path

import polars as pl
from changed_nights import change, made
from measures import Measure

from memstate_core.forget.due import ladder_is_due
from memstate_core.night.nights_due import nights_due
from memstate_core.retrieve.reader import SnapshotReader
from memstate_core.run.served_state import read_served
from memstate_core.run.store import Store, open_store
from memstate_core.state.current import served
from memstate_core.state.fold.ladder_state import ladder_state
from memstate_pipeline.run import maintain

SKIPPING = {"MEMSTATE_SCHEDULE_SKIP_UNCHANGED_DAYS": "30"}


def latest(store: Store) -> datetime:
    """The time of the last night of any shard."""
    return max(snapshot.manifest.now for snapshot in served(store.home, store.shards))


def seconds(act: Callable[[], object]) -> tuple[float, float]:
    """CPU and wall seconds."""
    cpu, wall = time.process_time(), time.perf_counter()
    act()
    return time.process_time() - cpu, time.perf_counter() - wall


def night(home: Path, changes: int, *, skips: bool) -> tuple[int, float, float]:
    """The next night after a day on which topics of one shard change; how many shards had one, CPU and wall seconds."""
    store = open_store(home, SKIPPING if skips else {})
    now = latest(store) + timedelta(days=1)
    if changes:
        scopes = store.ledger.scan("evidence").select(pl.col("scope").unique().sort()).collect()["scope"]
        mine = [scope for scope in scopes if store.layout.of(scope) == store.shards[0]]
        change(store, changes, now.toordinal(), now.isoformat(), mine)
    before = served(store.home, store.shards)
    used = seconds(lambda: maintain(store, now))
    after = served(store.home, store.shards)
    moved = sum(old.name != new.name for old, new in zip(before, after, strict=True))
    return moved, *used


def pressed(store: Store, now: datetime) -> bool:
    """Whether the ladder is due in any shard, asked about every topic."""
    policy = store.settings.policy.model_copy(update={"topic_count_soft_limit": 0})
    found = []
    for shard in read_served(store).values():
        with SnapshotReader(shard.snapshot) as reader:
            links = pl.scan_parquet(shard.snapshot.path / "evidence.parquet")
            found.append(ladder_is_due(reader.graph, links, ladder_state(shard.transitions), now, policy))
    return any(found)


def measured(home: Path, topics: int, scopes: int, shards: int, changes: int, *, all_too: bool = True) -> list[Measure]:
    """CPU and wall seconds by kind of night, and ratios of CPU seconds where nights of all shards are measured, too."""
    made(home, topics, scopes, shards)
    night(home, 0, skips=False)  # the next has a base of this version that was checked, and nothing left to search
    kinds = [(changed, skips) for changed in (0, changes) for skips in (False, True) if skips or all_too]
    found = {(changed, skips): night(home, changed, skips=skips) for changed, skips in kinds}
    store, measures = open_store(home, SKIPPING), list[Measure]()
    for (changed, skips), (nights, cpu, wall) in found.items():
        named = f"{changed:,} topics of one shard changed" if changed else "no change"
        named = f"{named}, {'unchanged shards skipped' if skips else 'every shard'}"
        measures.append(Measure(f"{named}: shards with a night", nights, "of " + str(shards)))
        measures += [Measure(f"{named}: CPU", cpu, "s"), Measure(f"{named}: wall", wall, "s")]
    for changed, most in ((0, 0.1), (changes, 0.4)) if all_too else ():
        ratio = found[changed, True][1] / found[changed, False][1]
        measures.append(Measure(f"CPU against every shard, {changed:,} topics changed", ratio, "times", most=most))
    cpu, wall = seconds(lambda: nights_due(store, latest(store)))
    measures += [Measure("the decision alone: CPU", cpu, "s"), Measure("the decision alone: wall", wall, "s")]
    cpu, _ = seconds(lambda: pressed(store, latest(store)))
    return [*measures, Measure("the ladder asked about every topic, with the bytes read: CPU", cpu, "s")]


def main(given: Sequence[str] | None = None) -> None:
    """Makes the store unless it is there, runs the nights and prints the figures."""
    parser = argparse.ArgumentParser(description="Measure nights in which shards without a change are skipped.")
    parser.add_argument("home", type=Path)
    parser.add_argument("--topics", type=int, default=100_000)
    parser.add_argument("--a-scope", type=int, default=400, help="topics of a scope")
    parser.add_argument("--shards", type=int, default=10)
    parser.add_argument("--changes", type=int, default=100, help="topics of one shard that change before a night")
    parser.add_argument("--only-skipping", action="store_true", help="leave out nights of every shard")
    args = parser.parse_args(given)
    scopes = max(1, args.topics // args.a_scope)
    shape = args.topics, scopes, args.shards, args.changes
    for each in measured(args.home, *shape, all_too=not args.only_skipping):
        sys.stdout.write(f"{each.name}: {each.shown} {each.unit}\n")


if __name__ == "__main__":
    main()
