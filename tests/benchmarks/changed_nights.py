"""What a night costs: without a change, and with some changed topics, in a store and in one of several times its size.

The stores have made-up topics in scopes of equal size, encoded by `hashing`. Every kind of night is run as it is, and
with everything folded, examined and indexed anew. CPU seconds are compared, which differ less than wall time on a
machine with other work; all figures are of one run in one process.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path
from unittest.mock import patch

import generate
import polars as pl
from measures import Measure

from memstate_core.ingest.importer import import_paths
from memstate_core.night import publish, reused_base
from memstate_core.night.checks import suite
from memstate_core.run import apply
from memstate_core.run.store import Store, open_store
from memstate_core.state.current import current_number, current_snapshot
from memstate_core.state.home import Home
from memstate_pipeline.run import maintain

SETTINGS = (
    '[embedding]\nmodel = "hashing"\n[store]\nshards = {shards}\nkeep_snapshots = 2\n[ingest]\nmax_future_days = 3650\n'
)
ANEW = ((reused_base, "_is_unchanged", False), (apply, "fold_of_base", None), (suite, "in_doubt", None))
"""What a night asks before it takes something over, and the answer by which it takes nothing over."""


def measured(folder: Path, sizes: tuple[int, int], a_scope: int, changes: int, rounds: int) -> list[Measure]:
    """CPU seconds of nights in both stores, and ratios between them.

    Args:
        folder: for the stores, which are made unless they are there.
        sizes: topics of the stores, the smaller one first.
        a_scope: topics of a scope.
        changes: how many topics of a store change before a night.
        rounds: nights of each kind; the least is taken.
    """
    found: dict[tuple[int, int, bool], float] = {}
    for topics in sizes:
        home = made(folder / f"{topics}-topics", topics, max(1, topics // a_scope))
        night(home, 0, anew=True)  # the next one has a base of this version that was checked
        for changed in (0, changes):
            for anew in (False, True):
                found[topics, changed, anew] = min(night(home, changed, anew=anew) for _ in range(rounds))
    return _measures(found, sizes, changes)


def _measures(found: dict[tuple[int, int, bool], float], sizes: tuple[int, int], changes: int) -> list[Measure]:
    small, large = sizes
    measures = []
    for changed, most in ((0, 0.75), (changes, 1.0)):
        named = f"night with {changed:,} changed topics" if changed else "night without a change"
        own, anew = found[large, changed, False], found[large, changed, True]
        growth = own / found[small, changed, False]
        measures += [
            Measure(f"{named}: CPU against everything anew, {large:,} topics", own / anew, "times", most=most),
            Measure(f"{named}: CPU of {large:,} topics against {small:,}", growth, "times"),
            *(Measure(f"{named}: CPU, {size:,} topics", found[size, changed, False], "s") for size in sizes),
        ]
    return measures


def made(home: Path, topics: int, scopes: int, shards: int = 1) -> Path:
    """A store after its first night of each shard."""
    if current_number(Home(home), "s0") is not None:
        return home
    store = begun(home, topics, scopes, shards)
    maintain(store, generate.END)
    return home


def begun(home: Path, topics: int, scopes: int, shards: int = 1) -> Store:
    """A store before its first night, with three observations of each topic."""
    home.mkdir(parents=True, exist_ok=True)
    (home / "memstate.toml").write_text(SETTINGS.format(shards=shards))
    store, dump = open_store(home, {}), home / "dump.jsonl"
    shared = ["--topics", str(topics), "--scopes", str(scopes), "--seed", "7"]
    generate.main([str(dump), "--observations", str(3 * topics), *shared])
    import_paths(store.ledger, store.settings, [dump], now=generate.END, run_id="made")
    dump.unlink()
    return store


def night(home: Path, changes: int, *, anew: bool, scopes: Sequence[str] | None = None) -> float:
    """Runs the next night after a day on which some topics change, of all scopes or of those named; its CPU seconds.

    Those of the import are not counted.
    """
    store = open_store(home)
    served = current_snapshot(store.home, "s0")
    assert served is not None
    now = served.manifest.now + timedelta(days=1)
    if changes:
        change(store, changes, served.manifest.number, now.isoformat(), scopes)
    with everything_anew() if anew else ExitStack():
        began = time.process_time()
        maintain(store, now)
        return time.process_time() - began


def change(store: Store, changes: int, seed: int, at: str, scopes: Sequence[str] | None = None) -> None:
    """Imports one new value each of some topics, of all scopes or of those named."""
    known = store.ledger.scan("evidence").select("scope", "topic_key").drop_nulls().unique().collect()
    known = known if scopes is None else known.filter(pl.col("scope").is_in(scopes))
    chosen = known.sort("scope", "topic_key").sample(changes, seed=seed)
    rows = [
        {
            "observation_id": f"change/{seed}/{number}",
            "scope": dict(zip(("type", "id"), scope.split(":", 1), strict=True)),
            "topic_key": topic,
            "observed_at": at,
            "fields": [{"name": "stage", "value": f"{seed}-{number % 7}"}],
        }
        for number, (scope, topic) in enumerate(chosen.iter_rows())
    ]
    with tempfile.TemporaryDirectory() as folder:
        dump = Path(folder) / "changes.jsonl"
        dump.write_text("".join(json.dumps(row) + "\n" for row in rows))
        now = generate.END.fromisoformat(at)
        import_paths(store.ledger, store.settings, [dump], now=now, run_id=f"change-{seed}")


@contextmanager
def everything_anew() -> Iterator[None]:
    """Nights take nothing over from their base."""
    with ExitStack() as patches:
        for module, name, answer in ANEW:
            patches.enter_context(patch.object(module, name, lambda *_, answer=answer: answer))
        patches.enter_context(patch.object(publish, "_earlier_index", lambda *_: None))
        yield


def main(given: Sequence[str] | None = None) -> None:
    """Makes the stores unless they are there, runs the nights and prints the figures."""
    parser = argparse.ArgumentParser(description="Measure nights with and without changes in stores of two sizes.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--topics", type=int, nargs=2, default=[25_000, 100_000], help="of the two stores")
    parser.add_argument("--a-scope", type=int, default=1_000, help="topics of a scope")
    parser.add_argument("--changes", type=int, default=100, help="topics that change before a night")
    parser.add_argument("--rounds", type=int, default=1, help="nights of each kind")
    args = parser.parse_args(given)
    small, large = args.topics
    for each in measured(args.folder, (small, large), args.a_scope, args.changes, args.rounds):
        sys.stdout.write(f"{each.name}: {each.shown} {each.unit}\n")


if __name__ == "__main__":
    main()
