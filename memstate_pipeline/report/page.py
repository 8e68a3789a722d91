"""Renders the page of a run as HTML, and its data as JSON.

The input is a `ReportData`; no store is opened here. The page is one file without scripts or network access, user text
in it is escaped, and the same data gives the same bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import polars as pl
from msgspec import json as msgjson

from memstate_core.state.files import replace_file
from memstate_pipeline.report.format import verdict
from memstate_pipeline.report.index import write_index
from memstate_pipeline.report.plots import growth_lines, salience_histogram
from memstate_pipeline.report.templates import environment

RUN_KEYS = ("run_id", "shard", "now", "previous_snapshot", "state_hash")
TABLES = ("decisions", "merges", "archived", "restored", "problems")
DECISIONS = ("kind", "topic_id", "title", "other_id", "other_title", "scope", "reason")
NO_DECISIONS = pl.DataFrame(schema=dict.fromkeys(DECISIONS, pl.String))
SHOWN = 50
"""Maximum number of rows of a table on the page; the JSON has all."""


@dataclass(frozen=True)
class ReportData:
    """The data of the page of one run of one shard.

    Attributes:
        summary: the JSON of `maintain`, optionally with `policy` (for the threshold in the plot) and
            `explanations` (sentences on archivals).
        decisions: those of a person, of a correction only (columns DECISIONS).
        merges: survivor, survivor_title, dropped, dropped_title, scope, probability, reason, reading (null if the merge
            records none).
        archived: topic_id, title, scope, salience, reason.
        restored: topic_id, title, scope, reason.
        problems: kind, topic_id, detail.
        salience: scope, state, salience; one row per topic.
        growth: snapshot, now, active, archived, merged, evidence; one row per kept snapshot, oldest first.
    """

    summary: dict[str, Any]
    decisions: pl.DataFrame
    merges: pl.DataFrame
    archived: pl.DataFrame
    restored: pl.DataFrame
    problems: pl.DataFrame
    salience: pl.DataFrame
    growth: pl.DataFrame


@dataclass(frozen=True)
class Listing:
    """The first rows of a table, and its length."""

    rows: list[Any]
    total: int


def render_report(data: ReportData) -> str:
    """The page as self-contained HTML."""
    return environment().get_template("page.html").render(_view(data))


def write_report(folder: Path, data: ReportData) -> tuple[Path, Path]:
    """Writes the page and its JSON atomically, replacing those of the same run and shard, and the list of all pages.

    Returns:
        The page `<run_id>-<shard>.html` and the JSON beside it: the summary, and all rows of decisions,
        merges, archived, restored and problems.
    """
    folder.mkdir(parents=True, exist_ok=True)
    page, document = report_paths(folder, data.summary["run_id"], data.summary["shard"])
    # The page is written last, so that the JSON that it links to exists.
    replace_file(document, msgjson.format(msgjson.encode(_document(data), enc_hook=str), indent=2) + b"\n")
    replace_file(page, render_report(data).encode())
    write_index(folder)
    return page, document


def report_paths(folder: Path, run_id: str, shard: str) -> tuple[Path, Path]:
    """The paths of the page and of the JSON of a run of a shard."""
    return folder / f"{run_id}-{shard}.html", folder / f"{run_id}-{shard}.json"


def _view(data: ReportData) -> dict[str, Any]:
    summary = data.summary
    seconds: dict[str, float] = summary.get("seconds") or {}
    checks = sorted(summary.get("checks") or [], key=lambda check: bool(check["passed"]))
    return {
        "run": {key: summary.get(key) for key in RUN_KEYS},
        "verdict": verdict(summary),
        "counts": summary.get("counts") or {},
        "totals": summary.get("totals") or {},
        "checks": checks,
        "failed": sum(not check["passed"] for check in checks),
        "seconds": seconds,
        "slowest": max(seconds.values(), default=0.0) or 1.0,
        "expected_false_merges": summary.get("expected_false_merges"),
        "calibration": [row for row in summary.get("calibration") or [] if row["merged"]],
        "spot_checks": summary.get("spot_checks") or [],
        "encoder": summary.get("encoder"),
        "explanations": summary.get("explanations") or [],
        "warnings": _beside(summary),
        **_ingest(summary.get("ingest") or {}),
        **{name: _head(getattr(data, name)) for name in TABLES},
        **_plots(data),
        "json_file": quote(report_paths(Path(), summary["run_id"], summary["shard"])[1].name),
    }


def _beside(summary: dict[str, Any]) -> list[Any]:
    """The warnings that the page shows nowhere else: files that could not be read have a list of their own."""
    listed = {str(error) for error in (summary.get("ingest") or {}).get("errors") or []}
    return [warning for warning in summary.get("warnings") or [] if warning not in listed]


def _ingest(ingest: dict[str, Any]) -> dict[str, Any]:
    reasons = sorted((ingest.get("reasons") or {}).items(), key=lambda item: (-item[1], item[0]))
    errors = [_as_text(error) for error in ingest.get("errors") or []]
    return {
        "ingest": {key: ingest.get(key, 0) for key in ("read", "accepted", "duplicate", "quarantined")},
        "reasons": reasons,
        "errors": Listing(errors[:SHOWN], len(errors)),
    }


def _plots(data: ReportData) -> dict[str, Any]:
    threshold = (data.summary.get("policy") or {}).get("forget_salience_threshold")
    return {
        "threshold": threshold,
        "salience_plot": salience_histogram(data.salience, threshold),
        "growth_plot": growth_lines(data.growth),
        "kept_runs": Listing(data.growth["now"].to_list(), data.growth.height),
    }


def _head(frame: pl.DataFrame) -> Listing:
    return Listing(frame.head(SHOWN).to_dicts(), frame.height)


def _as_text(error: object) -> str:
    if not isinstance(error, dict):
        return str(error)
    return ", ".join(f"{key}: {value}" for key, value in error.items())


def _document(data: ReportData) -> dict[str, Any]:
    return data.summary | {name: getattr(data, name).to_dicts() for name in TABLES}
