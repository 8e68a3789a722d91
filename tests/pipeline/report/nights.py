"""Two nights for the tests of pages: one in which nothing happened, and a busy one."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl

from memstate_pipeline.report import ReportData
from memstate_pipeline.report.page import NO_DECISIONS

MERGES = ("survivor", "survivor_title", "dropped", "dropped_title", "scope", "probability", "reason", "reading")
ARCHIVED = ("topic_id", "title", "scope", "salience", "reason")
RESTORED = ("topic_id", "title", "scope", "reason")
PROBLEMS = ("kind", "topic_id", "detail")
NUMBERS: dict[str, Any] = {"probability": pl.Float64, "salience": pl.Float64}
GROWTH: dict[str, Any] = {"snapshot": pl.Int64, "now": pl.Datetime("us", "UTC")}
GROWTH |= dict.fromkeys(("active", "archived", "merged", "evidence"), pl.Int64)
NOW = datetime(2026, 4, 22, 2, tzinfo=UTC)


def table(columns: tuple[str, ...], rows: list[tuple[Any, ...]] | None = None) -> pl.DataFrame:
    return pl.DataFrame(rows or [], {name: NUMBERS.get(name, pl.String) for name in columns}, orient="row")


def summary(**changes: Any) -> dict[str, Any]:
    return {
        "run_id": "r-20260422",
        "now": NOW.isoformat(),
        "shard": "s0",
        "snapshot": 12,
        "previous_snapshot": 11,
        "state_hash": "ab" * 32,
        "counts": {},
        "expected_false_merges": 0.0,
        "seconds": {},
        "checks": [],
        "ingest": {"read": 0, "accepted": 0, "duplicate": 0, "quarantined": 0, "reasons": {}, "errors": []},
        "totals": {},
        "warnings": [],
    } | changes


def quiet_night(**changes: Any) -> ReportData:
    """A run in which nothing happened in an empty store, but for the given changes of its summary."""
    return ReportData(
        summary=summary(**changes),
        decisions=NO_DECISIONS,
        merges=table(MERGES),
        archived=table(ARCHIVED),
        restored=table(RESTORED),
        problems=table(PROBLEMS),
        salience=table(("scope", "state", "salience")),
        growth=pl.DataFrame(schema=GROWTH),
    )


def busy_night(title: str = "Acme renewal") -> ReportData:
    """A run with a row in every section."""
    data = quiet_night(
        counts={"evidence": 1234567, "topics_created": 310, "merges": 1, "restored": 0, "archived": 1},
        expected_false_merges=0.034,
        calibration=[
            {"probability_from": 0.97, "pairs": 4, "merged": 3, "expected_false": 0.03},
            {"probability_from": 0.0, "pairs": 900, "merged": 0, "expected_false": 0.0},
        ],
        seconds={"evidence": 1.25, "topic_embeddings": 74.6, "merges": 0.012},
        checks=[{"name": "c1_query_soundness", "passed": True, "severity": "error", "detail": "0 of 310"}],
        ingest={
            "read": 1240000,
            "accepted": 1234567,
            "duplicate": 5000,
            "quarantined": 433,
            "reasons": {"bad_scope": 400, "id_conflict": 33},
            "errors": [{"file": "inbox/cut.jsonl.gz", "detail": title}],
        },
        totals={"active": 48210, "archived": 17},
        warnings=[f"watch {title}"],
        policy={"forget_salience_threshold": 0.05},
    )
    states = ["active"] * 40 + ["archived"] * 3 + ["merged"]
    values = [0.02 * 1.16**n for n in range(40)] + [0.0, 0.01, 0.02, 1.0]
    runs = range(5, 12)
    return replace(
        data,
        merges=table(MERGES, [("t-1", title, "t-2", f"{title} 2", "user:aya", 0.9731, "same text", None)]),
        archived=table(ARCHIVED, [("t-3", title, "user:aya", 0.012, "salience below 0.05")]),
        restored=table(RESTORED, [("t-4", title, "user:aya", "asked for again")]),
        problems=table(PROBLEMS, [("dangling_edge", "t-5", f"part_of {title}")]),
        salience=pl.DataFrame({"scope": "user:aya", "state": states, "salience": values}),
        growth=pl.DataFrame(
            {
                "snapshot": list(runs),
                "now": [NOW - timedelta(days=11 - n) for n in runs],
                "active": [n * 4000 for n in runs],
                "archived": list(runs),
                "merged": [n * 20 for n in runs],
                "evidence": [n * 100000 for n in runs],
            },
            schema=GROWTH,
        ),
    )


def section(page: str, name: str) -> str:
    found = re.search(rf'<section aria-labelledby="{name}">(.*?)</section>', page, re.DOTALL)
    assert found is not None, f"no section {name}"
    return found[1]
