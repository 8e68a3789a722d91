"""Questions to a large store of several shards: alone, and beside a night of all shards with changes in every scope.

The store is made beforehand (`README.md`, "A million topics"). `wrk` asks over loopback, each question as soon as the
last one is answered: the title of a topic in other words, in the topic's scope. A dump of new observations lies in the
inbox when the night begins, so that every shard has a night and is swapped in.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

import generate
import polars as pl
import serving

from memstate_core.model.text import iso
from memstate_core.run.store import Store, open_store
from memstate_core.state.current import served

NIGHT = "beside a night"


def write_questions(store: Store, file: Path, count: int, seed: int) -> None:
    """Bodies of queries, one a line, about served topics of all shards drawn at random."""
    columns = ["scope", "title"]
    folders = [snapshot.path for snapshot in served(store.home, store.shards)]
    topics = pl.concat([pl.read_parquet(folder / "topics.parquet", columns=columns) for folder in folders])
    rng = random.Random(seed)
    with file.open("w") as out:
        for _ in range(count):
            scope, title = topics.row(rng.randrange(topics.height))
            out.write(json.dumps({"q": rng.choice(serving.ASKED).format(title), "scope": scope}) + "\n")


def night(store: Store, changes: int, topics: int, scopes: int, seed: int) -> str:
    """A night a day after the last one; what it took, and how many shards it published."""
    before = served(store.home, store.shards)
    now: datetime = max(snapshot.manifest.now for snapshot in before) + timedelta(days=1)
    draft = store.home.inbox / f"changes-{now.date()}.part"
    draft.parent.mkdir(parents=True, exist_ok=True)
    sizes = ["--observations", str(changes), "--topics", str(topics), "--scopes", str(scopes), "--seed", str(seed)]
    generate.main([str(draft), *sizes])
    draft.rename(draft.with_suffix(".jsonl"))
    began = time.perf_counter()
    command = [*serving.PROGRAM, "--home", str(store.home.root), "maintain", "--now", iso(now), "--json"]
    subprocess.run(command, check=True, capture_output=True, text=True)
    took = time.perf_counter() - began
    after = served(store.home, store.shards)
    moved = sum(old.name != new.name for old, new in zip(before, after, strict=True))
    return f"{changes:,} rows, {moved} shards published in {took:.0f} s"


def run(args: argparse.Namespace) -> bool:
    """All phases; whether no request failed and p99 beside the night is within the factor."""
    store = open_store(args.home)
    questions = args.home / "questions.jsonl"
    write_questions(store, questions, args.questions, args.seed)
    with serving.serving(args.home) as (url, process):
        began = time.perf_counter()
        while serving.ready(url) is None:
            time.sleep(0.2)
        print(f"ready after {time.perf_counter() - began:.1f} s\n", flush=True)
        bench = serving.Bench(args.home, url, process, questions, args.connections, args.seed)
        bench.measure("warm-up", args.seconds)
        bench.phases.clear()
        bench.measure(serving.ALONE, args.seconds)
        bench.measure(NIGHT, 0, lambda: night(store, args.changes, args.topics, args.scopes, args.seed))
        bench.measure(f"{serving.ALONE}, again", args.seconds)
    print(serving.table(bench.phases))
    return not any(phase.failed for phase in bench.phases) and serving.ratio(bench.phases[1], bench.phases) <= 2


def main(given: Sequence[str] | None = None) -> None:
    """Prints one table; exits with 1 if a request failed or p99 beside the night is over twice that without it."""
    parser = argparse.ArgumentParser(description="Ask a large store alone and beside a night.")
    parser.add_argument("home", type=Path)
    parser.add_argument("--changes", type=int, default=10_000, help="rows that the night ingests")
    parser.add_argument("--topics", type=int, default=10_000, help="topics that these rows are about")
    parser.add_argument("--scopes", type=int, default=100)
    parser.add_argument("--connections", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--questions", type=int, default=50_000)
    parser.add_argument("--seed", type=int, default=7)
    args = parser.parse_args(given)
    if shutil.which("wrk") is None:
        parser.error("wrk is not installed (Debian: apt-get install wrk)")
    sys.exit(0 if run(args) else 1)


if __name__ == "__main__":
    main()
