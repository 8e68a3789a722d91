"""The latest runs, from their reports and from the retained snapshots."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from msgspec import MsgspecError, Struct
from msgspec import json as msgjson

from memstate_core.model.errors import SnapshotDamaged
from memstate_core.model.text import iso
from memstate_core.state.home import Home
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


def runs(home: Home, shards: list[str], limit: int) -> list[Run]:
    """The latest runs of all shards, newest snapshot first, ready for JSON.

    A run without a report, such as an undo, is described by its snapshot alone: `counts` (the changes), `checks` and
    `seconds` are null.

    Args:
        home: the store's home.
        shards: the shards of the store.
        limit: the maximum number of runs.
    """
    found = {run["snapshot"]: run for run in map(_kept, _manifests(home, shards, limit))}
    reports = sorted(home.reports.glob("*.json"), key=lambda path: path.stat().st_mtime_ns, reverse=True)
    found |= {run["snapshot"]: run for run in map(_reported, reports[:limit]) if run is not None}
    return _newest_first(found.values())[:limit]


def _newest_first(found: Iterable[Run]) -> list[Run]:
    """Runs by time, those of a shard by number: a rollback has the time of the state that it serves again."""
    reached: dict[str, str] = {}
    placed = []
    for run in sorted(found, key=lambda run: _numbered(run["snapshot"])):
        shard, number = _numbered(run["snapshot"])
        reached[shard] = max(reached.get(shard, ""), run["now"])
        placed.append(((reached[shard], shard, number), run))
    return [run for _, run in sorted(placed, key=lambda each: each[0], reverse=True)]


def _manifests(home: Home, shards: list[str], limit: int) -> list[Manifest]:
    """Manifests of retained snapshots; skips those that were removed meanwhile or have another schema."""
    found = []
    for shard in shards:
        for number in numbers(home, shard)[-limit:]:
            try:
                found.append(load_snapshot(home, shard, number).manifest)
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
