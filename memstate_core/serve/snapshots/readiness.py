"""Readiness: the served snapshot, its age, the run that published it, and failures since.

A server with a stale snapshot is still ready: yesterday's answer is better than none, and otherwise an outage of the
nightly run would take down every server. The snapshot is reported as `stale`.
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
from memstate_core.run.store import Store
from memstate_core.serve.snapshots.generation import Generation
from memstate_core.state.fetch_note import FetchNote, read_fetch_note
from memstate_core.state.home import Home
from memstate_core.state.snapshots import Manifest
from memstate_core.storage.checkout_state import checkout_state

Document = dict[str, Any]


@dataclass(frozen=True)
class Refused:
    """A snapshot that CURRENT names and the server could not open.

    Attributes:
        snapshot: its name.
        detail: why, in a sentence.
        since: when the problem was first found.
    """

    snapshot: str
    detail: str
    since: datetime


class _Report(msgspec.Struct, frozen=True):
    """The part of a run's report that is used here."""

    checks: list[dict[str, Any]] = []


def readiness(
    store: Store,
    generation: Generation,
    refused: Refused | None,
    now: datetime,
    max_age: float | None,
) -> Document:
    """Describes what is served.

    Args:
        store: the store.
        generation: the served generation.
        refused: the snapshot that CURRENT names, if it cannot be opened.
        now: the current time.
        max_age: seconds after which a snapshot is stale; None for never.
    """
    home, age = store.home, age_of(generation, now)
    fetch, checkout = read_fetch_note(home), checkout_state(home, store.settings.store.url)
    document = {
        "status": "ready",
        "snapshot": generation.snapshot,
        "age_seconds": round(age, 3),
        "stale": is_stale(age, max_age),
        "max_age_seconds": max_age,
        "last_run": _published(home, generation.newest),
        "unpublished_run": _unpublished(home, store.shards, generation),
        "missing_shards": generation.damaged.note(None).get("missing_shards", []),
        "refused_snapshot": None if refused is None else _described(refused),
    }
    added = {"fetch": fetch and _fetch(fetch), "checkout": checkout and msgspec.to_builtins(checkout)}
    return document | {name: value for name, value in added.items() if value is not None}


def age_of(generation: Generation, now: datetime) -> float:
    """Seconds since the newest of its snapshots was written."""
    return max(0.0, (now - generation.published_at).total_seconds())


def is_stale(age: float, max_age: float | None) -> bool:
    """Whether a snapshot of this age is stale."""
    return max_age is not None and age > max_age


def _fetch(note: FetchNote) -> Document:
    at = None if note.at is None else iso(note.at)
    return {"at": at, "waiting": note.waiting, "problem": note.problem}


def _described(refused: Refused) -> Document:
    return {"snapshot": refused.snapshot, "detail": refused.detail, "since": iso(refused.since)}


def _published(home: Home, manifest: Manifest) -> Document:
    """The run that published a snapshot; `checks_passed` is null if it left no report."""
    try:
        page = home.reports / f"{manifest.run_id}-{manifest.shard}.json"
        passed = _passed(msgspec.json.decode(page.read_bytes(), type=_Report).checks)
    except (OSError, msgspec.MsgspecError):
        passed = None
    return {"run_id": manifest.run_id, "now": iso(manifest.now), "checks_passed": passed}


def _unpublished(home: Home, shards: Sequence[str], generation: Generation) -> Document | None:
    """The run that began after the served one and has not published: still running, or failed.

    If several shards have one, the latest by logical time.
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
    """Whether every blocking check passed; None if none has a result yet."""
    blocking = [bool(check["passed"]) for check in checks if check.get("severity") == "ERROR"]
    return all(blocking) if blocking else None
