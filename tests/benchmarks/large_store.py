"""Questions to a large store of several shards: alone, and beside a night of all shards with changes in every scope.

The store is made beforehand (`README.md`, "A million topics"). `wrk` asks over loopback, each question as soon as the
last one is answered: the title of a topic in other words, in the topic's scope. A dump of new observations lies in the
inbox when the night begins, so that every shard has a night and is swapped in.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

import generate
import serving

from memstate_core.model.text import iso
from memstate_core.run.store import Store, open_store
from memstate_core.state.current import served

NIGHT = "beside a night"


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
    serving.write_questions(args.home, questions, args.questions, args.seed)
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
    return serving.within(args.factor, bench.phases)


def main(given: Sequence[str] | None = None) -> None:
    """Prints one table; exits with 1 if a request failed or the night slowed others beyond the factor."""
    parser = argparse.ArgumentParser(description="Ask a large store alone and beside a night.")
    parser.add_argument("home", type=Path)
    parser.add_argument("--changes", type=int, default=10_000, help="rows that the night ingests")
    parser.add_argument("--topics", type=int, default=10_000, help="topics that these rows are about")
    parser.add_argument("--scopes", type=int, default=100)
    args = serving.parsed(parser, given, connections=1, factor=2.0)
    sys.exit(0 if run(args) else 1)


if __name__ == "__main__":
    main()
