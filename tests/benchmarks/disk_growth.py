"""The disk that a store takes after nights with changes, beside one that has the same input and a single night."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import generate
import polars as pl
from changed_nights import begun, change, night
from measures import Measure

from memstate_core.run.store import Store
from memstate_pipeline.run import maintain

MOST_GROWTH = 1.3
_BLOCK = 512
"""Bytes of a block, as `st_blocks` counts them."""


def measured(folder: Path, topics: int, a_scope: int, nights: int, changes: int) -> list[Measure]:
    """Bytes of both stores, and their ratio, as a whole and for each folder of a home.

    Args:
        folder: for the stores, which are removed.
        topics: of each store.
        a_scope: topics of a scope.
        nights: how many there are, each with changes, after the first one.
        changes: how many topics change before each.
    """
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        old, fresh = (begun(Path(scratch) / name, topics, topics // a_scope) for name in ("old", "fresh"))
        maintain(old, generate.END)
        for _ in range(nights):
            night(old.home.root, changes, anew=False)
        for number in range(1, nights + 1):  # what `night` imports after the snapshot of this number
            change(fresh, changes, number, (generate.END + timedelta(days=number)).isoformat())
        for later in (nights, nights + 1):  # two snapshots are kept, as of the other store
            maintain(fresh, generate.END + timedelta(days=later))
        night(old.home.root, 0, anew=False)
        if not _evidence(old).equals(_evidence(fresh)):
            raise AssertionError("the stores did not get the same input")
        return _measures(old, fresh, topics, f"{topics:,} topics after {nights} nights of {changes:,} changes")


def _evidence(store: Store) -> pl.Series:
    """What distinguishes the rows that a store has."""
    return store.ledger.scan("evidence").select("evidence_id").collect().to_series().sort()


def _measures(old: Store, fresh: Store, topics: int, named: str) -> list[Measure]:
    parts = sorted({path.name for store in (old, fresh) for path in store.home.root.iterdir()})
    grown, built = _bytes(old.home.root), _bytes(fresh.home.root)
    measures = [
        Measure(f"{named}: against a fresh build", grown / built, "times", most=MOST_GROWTH),
        Measure(f"{named}: a topic", grown / topics / 1e3, "kB"),
        Measure("a fresh build of the same input: a topic", built / topics / 1e3, "kB"),
    ]
    for part in parts:
        sizes = [_bytes(store.home.root / part) / 1e6 for store in (old, fresh)]
        if max(sizes) >= 0.1:
            measures += [
                Measure(f"{part}, {which}", size, "MB") for which, size in zip(("old", "fresh"), sizes, strict=True)
            ]
    return measures


def _bytes(place: Path) -> int:
    """Bytes on disk of a file, or of everything below a folder; files that are linked count once."""
    files = [place, *place.rglob("*")] if place.exists() else []
    found = {(stat.st_dev, stat.st_ino): stat.st_blocks for stat in (path.lstat() for path in files)}
    return _BLOCK * sum(found.values())


def main(given: Sequence[str] | None = None) -> None:
    """Makes both stores and prints the figures."""
    parser = argparse.ArgumentParser(description="Measure the disk that a store takes after nights with changes.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--topics", type=int, default=20_000)
    parser.add_argument("--a-scope", type=int, default=1_000, help="topics of a scope")
    parser.add_argument("--nights", type=int, default=60)
    parser.add_argument("--changes", type=int, default=200, help="topics that change before a night")
    args = parser.parse_args(given)
    args.folder.mkdir(parents=True, exist_ok=True)
    for each in measured(args.folder, args.topics, args.a_scope, args.nights, args.changes):
        sys.stdout.write(f"{each.name}: {each.shown} {each.unit}\n")


if __name__ == "__main__":
    main()
