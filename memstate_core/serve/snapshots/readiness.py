"""What the server can say of itself: what it serves, how old that is, which run made it, what went wrong since.

A snapshot that is too old is still served, and the server is still ready: an answer of yesterday is better than
none, and an outage of the nightly run would else become one of every server at once. It is told as `stale`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from memstate_core.model.errors import StagingMissing
from memstate_core.model.text import iso
from memstate_core.run.run import Run
from memstate_core.serve.snapshots.generation import Generation
from memstate_core.state.home import Home
from memstate_core.state.snapshots import Manifest

Document = dict[str, Any]


@dataclass(frozen=True)
class Refused:
    """What CURRENT names and the server could not open.

    Attributes:
        snapshot: its name.
        detail: why, in a sentence.
        since: when that was found first.
    """

    snapshot: str
    detail: str
    since: datetime


class _Report(msgspec.Struct, frozen=True):
    """What of a run's report is told here."""

    checks: list[dict[str, Any]] = []


def readiness(
    home: Home,
    shards: Sequence[str],
    generation: Generation,
    refused: Refused | None,
    now: datetime,
    max_age: float | None,
) -> Document:
    """What is served.

    Args:
        home: the store's home.
        shards: its shards.
        generation: what is served.
        refused: what CURRENT names beside it, if that cannot be opened.
        now: the machine's clock.
        max_age: seconds from which on a snapshot is stale; None for never.
    """
    age = age_of(generation, now)
    return {
        "status": "ready",
        "snapshot": generation.snapshot,
        "age_seconds": round(age, 3),
        "stale": is_stale(age, max_age),
        "max_age_seconds": max_age,
        "last_run": _published(home, generation.newest),
        "unpublished_run": _unpublished(home, shards, generation),
        "refused_snapshot": None if refused is None else _told(refused),
    }


def age_of(generation: Generation, now: datetime) -> float:
    """Seconds since the newest of its snapshots was written."""
    return max(0.0, (now - generation.published_at).total_seconds())


def is_stale(age: float, max_age: float | None) -> bool:
    """Whether a snapshot of this age is older than it should be."""
    return max_age is not None and age > max_age


def _told(refused: Refused) -> Document:
    return {"snapshot": refused.snapshot, "detail": refused.detail, "since": iso(refused.since)}


def _published(home: Home, manifest: Manifest) -> Document:
    """The run that made a snapshot; `checks_passed` is null where it left no report."""
    try:
        page = home.reports / f"{manifest.run_id}-{manifest.shard}.json"
        passed = _passed(msgspec.json.decode(page.read_bytes(), type=_Report).checks)
    except (OSError, msgspec.MsgspecError):
        passed = None
    return {"run_id": manifest.run_id, "now": iso(manifest.now), "checks_passed": passed}


def _unpublished(home: Home, shards: Sequence[str], generation: Generation) -> Document | None:
    """The run that began after what is served and has published nothing: it is going on, or it has failed.

    Of several, by shard, the latest by logical time.
    """
    served = {reader.snapshot.manifest.shard: reader.snapshot.manifest.number for reader in generation.readers}
    begun = [run for shard in shards if (run := _begun(home, shard, served)) is not None]
    return max(begun, key=lambda run: str(run["now"]), default=None)


def _begun(home: Home, shard: str, served: Mapping[str, int]) -> Document | None:
    try:
        run = Run.load(home.work(shard))
        checks = run.checks()
    except (StagingMissing, OSError, ValueError):
        return None
    if run.facts.number <= served.get(shard, 0):
        return None
    return {"run_id": run.facts.run_id, "now": iso(run.facts.now), "checks_passed": _passed(checks)}


def _passed(checks: Sequence[Mapping[str, Any]]) -> bool | None:
    """Whether every check that can stop a run let it pass; None where none has spoken yet."""
    blocking = [bool(check["passed"]) for check in checks if check.get("severity") == "ERROR"]
    return all(blocking) if blocking else None
