"""The summary of a maintenance, the JSON of `memstate maintain`, from those of its shards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from memstate_core.ingest import unreported
from memstate_core.model.text import iso
from memstate_core.state.snapshots import Snapshot, combined_state_hash
from memstate_pipeline.report.collect import COUNTED, published
from memstate_pipeline.report.page import TABLES


def summary_of_run(document: dict[str, Any]) -> dict[str, Any]:
    """What the data of a run's page say, without its tables."""
    return {name: value for name, value in document.items() if name not in TABLES}


def together(ran: Sequence[dict[str, Any]], skipped: Sequence[Snapshot], shards: Sequence[str]) -> dict[str, Any]:
    """One summary for all shards: numbers are added, and a check passes if it passes in every shard.

    Args:
        ran: the summaries of the shards that had a night.
        skipped: what the others serve on; the summary names them under `skipped` if there are any.
        shards: the order of the shards.
    """
    if len(ran) == 1 and not skipped:
        return ran[0]
    summaries = sorted([*ran, *map(_kept, skipped)], key=lambda summary: shards.index(summary["shard"]))
    first = next(iter(ran), summaries[0])
    added = {part: _added([s[part] for s in summaries]) for part in ("counts", "seconds", "totals", "extractor")}
    checks = [
        _worst([c for s in summaries for c in s["checks"] if c["name"] == one["name"]]) for one in first["checks"]
    ]
    hashes = {summary["shard"]: summary["state_hash"] for summary in summaries}
    named = {"skipped": [snapshot.manifest.shard for snapshot in skipped]} if skipped else {}
    return {
        **first,
        **added,
        "run_id": ",".join(summary["run_id"] for summary in ran),
        "expected_false_merges": round(sum(summary["expected_false_merges"] or 0 for summary in summaries), 2),
        "calibration": _calibrated(summaries),
        "snapshot": ",".join(summary["snapshot"] for summary in summaries),
        "state_hash": combined_state_hash(hashes),
        "checks": checks,
        "ingest": _ingested([summary.get("ingest") or {} for summary in ran]),
        "warnings": list(dict.fromkeys(warning for summary in ran for warning in summary.get("warnings") or [])),
        "shards": summaries,
        **named,
    }


def _kept(served: Snapshot) -> dict[str, Any]:
    """The summary of a shard without a night: what it serves, and that nothing was done."""
    nothing: dict[str, Any] = {
        "run_id": "",
        "counts": dict.fromkeys(COUNTED, 0),
        "expected_false_merges": None,
        "calibration": [],
    }
    made = {"shard": served.manifest.shard, "now": iso(served.manifest.now)}
    return {**published(served), **made, **nothing, "seconds": {}, "checks": [], "extractor": {}}


def _ingested(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What the reports of the shards cover of the inbox; no two of them cover the same import."""
    counts = {name: sum(part.get(name) or 0 for part in parts) for name in unreported.COUNTS}
    reasons = _added([part.get("reasons") or {} for part in parts])
    return {**counts, "reasons": reasons, "errors": [error for part in parts for error in part.get("errors") or []]}


def _worst(verdicts: list[dict[str, Any]]) -> dict[str, Any]:
    """The first failure of a check over shards, else its first verdict."""
    return next((verdict for verdict in verdicts if not verdict["passed"]), verdicts[0])


def _calibrated(summaries: list[dict[str, Any]]) -> list[dict[str, float]]:
    rows = [row for summary in summaries for row in summary["calibration"]]
    edges = sorted({row["probability_from"] for row in rows}, reverse=True)
    return [
        _added([row for row in rows if row["probability_from"] == edge]) | {"probability_from": edge} for edge in edges
    ]


def _added(parts: list[dict[str, float]]) -> dict[str, float]:
    names = dict.fromkeys(name for part in parts for name in part)
    return {name: round(sum(part.get(name, 0) for part in parts), 3) for name in names}
