"""What runs have left: the reports that were written last, and the snapshots that are kept."""

from __future__ import annotations

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
    """What of a report is told; the page beside it has the rest."""

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
    """The last runs of all shards, newest snapshot first, ready for JSON.

    A run without a report, such as an undo, is told by its snapshot alone: `counts` (what changed), `checks` and
    `seconds` are null.

    Args:
        home: whose runs.
        shards: the shards of the store.
        limit: how many to give at most.
    """
    told = {run["snapshot"]: run for run in map(_kept, _manifests(home, shards, limit))}
    reports = sorted(home.reports.glob("*.json"), key=lambda path: path.stat().st_mtime_ns, reverse=True)
    told |= {run["snapshot"]: run for run in map(_reported, reports[:limit]) if run is not None}
    return sorted(told.values(), key=lambda run: (run["now"], *_numbered(run["snapshot"])), reverse=True)[:limit]


def _manifests(home: Home, shards: list[str], limit: int) -> list[Manifest]:
    """Manifests of kept snapshots; one that goes away meanwhile, or is of another schema, is passed over."""
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
    """What a report says; None for a file that is none, or is gone."""
    try:
        report = msgjson.decode(path.read_bytes(), type=_Report)
    except (OSError, MsgspecError):
        return None
    return {name: getattr(report, name) for name in report.__struct_fields__}


def _numbered(snapshot: str) -> tuple[str, int]:
    shard, _, number = snapshot.partition("/")
    return shard, int(number)
