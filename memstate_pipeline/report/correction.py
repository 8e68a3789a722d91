"""The page of a correction: what a person decided, and what became of the shard.

Invariant: what was published stays published, so a page that cannot be written fails no command.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from memstate_core.ingest.unforeseen import described, is_unforeseen
from memstate_core.model.errors import MemstateError
from memstate_core.model.text import iso
from memstate_core.night.corrections import Corrected
from memstate_core.run.run import GRAPH_FILE
from memstate_core.run.store import Store
from memstate_core.state.fold.decisions import ARCHIVED, MERGED, RESTORED
from memstate_core.state.graph import TOPIC, open_graph
from memstate_core.state.snapshots import load_snapshot
from memstate_pipeline.report.collect import SALIENCE, growth, merged_rows, moved_rows, published
from memstate_pipeline.report.page import DECISIONS, ReportData, write_report

_NAMES = {MERGED: "merges"}
"""Kinds of decisions that the counts of reports name otherwise."""
_PAYLOAD = pl.Struct(dict.fromkeys(("a", "b", "verdict", "survivor"), pl.String))


def report_correction(store: Store, done: Corrected) -> tuple[Path | None, str | None]:
    """Writes the page of a correction that was published, and its JSON.

    Returns:
        The page and None; None and the reason if it cannot be written.
    """
    try:
        return write_report(store.home.reports, collect_correction(store, done))[0], None
    except Exception as error:
        if not (is_unforeseen(error) or isinstance(error, (MemstateError, OSError))):
            raise
        return None, described(error)


def collect_correction(store: Store, done: Corrected) -> ReportData:
    """The data of the page of a correction."""
    before, now = done.before, done.manifest
    served = load_snapshot(store.home, now.shard, now.number)
    with open_graph(served.path / GRAPH_FILE, read_only=True) as graph:
        topics = graph.read(TOPIC, ["id", "title", "scope", "state", "salience"])
    titles = topics.select(topic_id="id", title="title")
    checks = [
        {"name": each.name, "passed": each.passed, "severity": "ERROR", "detail": each.detail} for each in done.checks
    ]
    run = {
        "run_id": now.run_id,
        "now": iso(now.now),
        "shard": now.shard,
        "previous_snapshot": f"{before.shard}/{before.number}",
        "counts": _counts(done.decisions["kind"].to_list()),
        "checks": checks,
        "warnings": [],
    }
    return ReportData(
        summary=published(served) | run,
        decisions=decision_rows(done.decisions, titles),
        merges=merged_rows(done.decisions, titles),
        archived=moved_rows(done.decisions, titles, ARCHIVED),
        restored=moved_rows(done.decisions, titles, RESTORED).drop("salience"),
        problems=pl.DataFrame(),
        salience=topics.filter(pl.col("state") != "merged").select(SALIENCE.keys()),
        growth=growth(store, now.shard),
    )


def decision_rows(decisions: pl.DataFrame, titles: pl.DataFrame) -> pl.DataFrame:
    """Decisions as the page lists them.

    Args:
        decisions: columns DECISION.
        titles: columns topic_id and title.

    Returns:
        Columns DECISIONS; a decision about two topics has both, and a verdict is its kind.
    """
    rows = decisions.with_columns(_of=pl.col("payload_json").str.json_decode(_PAYLOAD)).unnest("_of")
    pair = rows.with_columns(
        kind=pl.coalesce("verdict", "kind"),
        topic_id=pl.coalesce("a", "topic_id"),
        other_id=pl.coalesce("b", "survivor"),
    )
    named = pair.join(titles, on="topic_id", how="left", maintain_order="left")
    others = titles.rename({"topic_id": "other_id", "title": "other_title"})
    return named.join(others, on="other_id", how="left", maintain_order="left").select(DECISIONS)


def _counts(kinds: Sequence[str]) -> dict[str, int]:
    names = [_NAMES.get(kind, kind) for kind in kinds]
    return {name: names.count(name) for name in sorted(set(names))}
