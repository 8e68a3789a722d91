"""The latest runs, from their reports and from the retained snapshots."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import polars as pl
from deltalake.exceptions import DeltaError
from msgspec import MsgspecError, Struct
from msgspec import json as msgjson

from memstate_core.model.errors import SnapshotDamaged
from memstate_core.model.text import iso
from memstate_core.run.publications import rolled_back
from memstate_core.run.store import Store
from memstate_core.state.snapshots import Manifest, load_snapshot, numbers

Run = dict[str, Any]


class _Report(Struct, frozen=True):
    """The part of a report that the API returns."""

    run_id: str
    now: str
    shard: str
    snapshot: str
    state_hash: str
    counts: dict[str, int]
    totals: dict[str, int]
    checks: list[dict[str, Any]] = []
    seconds: dict[str, float] = {}
    expected_false_merges: float | None = None


def runs(store: Store, limit: int) -> list[Run]:
    """The latest runs of all shards, newest snapshot first, ready for JSON.

    A run without a report, such as a rollback, is described by its snapshot alone: `counts` (the changes), `checks` and
    `seconds` are null. A run that failed has no snapshot and is not among them.

    Args:
        store: the store.
        limit: the maximum number of runs.
    """
    found = {run["snapshot"]: run for run in map(_kept, _manifests(store, limit))}
    paths = sorted(store.home.reports.glob("*.json"), key=lambda path: path.stat().st_mtime_ns, reverse=True)
    reports = (run for run in map(_reported, paths) if run is not None)
    found |= {run["snapshot"]: run for run in islice(reports, limit)}
    undone = {shard: _undone(store, shard) for shard in {_numbered(name)[0] for name in found}}
    return [run | {"in_effect": _holds(run, undone)} for run in _newest_first(found.values())[:limit]]


def _holds(run: Run, undone: Mapping[str, Collection[int] | None]) -> bool | None:
    shard, number = _numbered(run["snapshot"])
    numbers = undone.get(shard)
    return None if numbers is None else number not in numbers


def _undone(store: Store, shard: str) -> Collection[int] | None:
    """The numbers of the snapshots that a rollback undid; None if the ledger cannot be read."""
    try:
        return rolled_back(store, shard)
    except (OSError, DeltaError, pl.exceptions.PolarsError):
        return None


def _newest_first(found: Iterable[Run]) -> list[Run]:
    """Runs by time, those of a shard by number: a rollback has the time of the state that it serves again."""
    reached: dict[str, str] = {}
    placed = []
    for run in sorted(found, key=lambda run: _numbered(run["snapshot"])):
        shard, number = _numbered(run["snapshot"])
        reached[shard] = max(reached.get(shard, ""), run["now"])
        placed.append(((reached[shard], shard, number), run))
    return [run for _, run in sorted(placed, key=lambda each: each[0], reverse=True)]


def _manifests(store: Store, limit: int) -> list[Manifest]:
    """Manifests of retained snapshots; skips those that were removed meanwhile or have another schema."""
    found = []
    for shard in store.shards:
        for number in numbers(store.home, shard)[-limit:]:
            try:
                found.append(load_snapshot(store.home, shard, number).manifest)
            except SnapshotDamaged:
                continue
    return found


def _kept(manifest: Manifest) -> Run:
    return {
        "run_id": manifest.run_id,
        "now": iso(manifest.now),
        "shard": manifest.shard,
        "snapshot": f"{manifest.shard}/{manifest.number}",
        "state_hash": manifest.state_hash,
        "counts": None,
        "totals": manifest.counts,
        "checks": None,
        "seconds": None,
        "expected_false_merges": None,
    }


def _reported(path: Path) -> Run | None:
    """The content of a report; None if the file is invalid or gone."""
    try:
        report = msgjson.decode(path.read_bytes(), type=_Report)
    except (OSError, MsgspecError):
        return None
    return {name: getattr(report, name) for name in report.__struct_fields__}


def _numbered(snapshot: str) -> tuple[str, int]:
    shard, _, number = snapshot.partition("/")
    return shard, int(number)
