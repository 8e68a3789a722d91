"""Gathers the data of a run's page from its notes and decisions, the published graph and earlier manifests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from memstate_core.forget.bound import over_bound, over_bound_warnings
from memstate_core.forget.eviction_order import EVICTION_FITS
from memstate_core.ingest.inbox import folder_warnings
from memstate_core.llm.extraction import FAILURES
from memstate_core.model.frames import MOMENT, Schema, empty
from memstate_core.model.step_frames import CALIBRATION, PROBLEMS
from memstate_core.model.text import iso, iso_expr
from memstate_core.revise.merge_precision import ESTIMATES
from memstate_core.revise.reading_text import READING, reading_text
from memstate_core.run.embed_topics import ENCODERS
from memstate_core.run.run import GRAPH_FILE, Run
from memstate_core.run.store import Store
from memstate_core.state.fold.decisions import ARCHIVED, MERGED, RESTORED
from memstate_core.state.graph import TOPIC, open_graph
from memstate_core.state.snapshots import Snapshot, load_snapshot, numbers
from memstate_pipeline.report.explanations import explanations
from memstate_pipeline.report.page import NO_DECISIONS, ReportData

COUNTED = {
    "evidence": ("evidence", "evidence"),
    "accesses": ("evidence", "accesses"),
    "topics_created": ("topics", "topics_created"),
    "revisions": ("topics", "revisions"),
    "topics_embedded": ("topic_embeddings", "topics_embedded"),
    "merges": ("merges", "merges"),
    "restored": ("forgetting", "restored"),
    "summarised": ("forgetting", "summarised"),
    "detached": ("forgetting", "detached"),
    "archived": ("forgetting", "archived"),
    "attached": ("forgetting", "attached"),
    "expanded": ("forgetting", "expanded"),
}
"""The step and the name of each count of the report."""

_GROWTH: Schema = {
    "snapshot": pl.Int64,
    "now": MOMENT,
    **dict.fromkeys(("active", "archived", "merged", "evidence"), pl.Int64),
}
SALIENCE: Schema = {"scope": pl.String, "state": pl.String, "salience": pl.Float64}


def collect(store: Store, run: Run) -> ReportData:
    """The data of the page of a run that has just published."""
    served = load_snapshot(store.home, run.facts.shard, run.facts.number)
    with open_graph(served.path / GRAPH_FILE, read_only=True) as graph:
        topics = graph.read(TOPIC, ["id", "title", "scope", "state", "salience", "pinned"])
    titles = topics.select(topic_id="id", title="title")
    decisions = run.decisions()
    return ReportData(
        summary=published(served) | _numbers(run) | _texts(store, run, topics),
        merges=merged_rows(decisions, titles),
        archived=moved_rows(decisions, titles, ARCHIVED),
        restored=moved_rows(decisions, titles, RESTORED).drop("salience"),
        problems=run.table("problems", PROBLEMS),
        salience=topics.filter(pl.col("state") != "merged").select(SALIENCE.keys()),
        growth=growth(store, run.facts.shard),
        decisions=NO_DECISIONS,
    )


def collect_numbers(store: Store, run: Run, problem: str) -> ReportData:
    """The data of a run's page without any text of the published state.

    Args:
        store: the store.
        run: a run that has just published.
        problem: why the rest cannot be reported.
    """
    served = load_snapshot(store.home, run.facts.shard, run.facts.number)
    more = {"explanations": [], "warnings": [f"this report is incomplete: {problem}"]}
    return _without_tables(store, run.facts.shard, published(served) | _numbers(run) | more)


def collect_failed(store: Store, shard: str, run: Run | None, known: dict[str, Any]) -> ReportData:
    """The data of the page of a run that has not published.

    Args:
        store: the store.
        shard: its shard.
        run: what it left; None if it failed before it began.
        known: what is known beside that, or instead of it.
    """
    nothing: dict[str, Any] = {"counts": {}, "checks": [], "seconds": {}, "totals": {}}
    return _without_tables(store, shard, nothing | known | ({} if run is None else _numbers(run)))


def _without_tables(store: Store, shard: str, summary: dict[str, Any]) -> ReportData:
    nothing = pl.DataFrame()
    return ReportData(
        summary=summary,
        merges=nothing,
        archived=nothing,
        restored=nothing,
        problems=nothing,
        salience=pl.DataFrame(schema=SALIENCE),
        growth=growth(store, shard),
        decisions=NO_DECISIONS,
    )


def published(served: Snapshot) -> dict[str, Any]:
    """What a report has of the snapshot that a run published."""
    return {"snapshot": served.name, "state_hash": served.manifest.state_hash, "totals": served.manifest.counts}


def _numbers(run: Run) -> dict[str, Any]:
    facts, notes = run.facts, run.notes()
    imported, counted = run.imported(), notes.get("placements", {}).get("counts", {})
    return {
        "run_id": facts.run_id,
        "now": iso(facts.now),
        "shard": facts.shard,
        "previous_snapshot": None if facts.base is None else f"{facts.shard}/{facts.base}",
        "counts": {name: notes.get(step, {}).get("counts", {}).get(key, 0) for name, (step, key) in COUNTED.items()},
        "expected_false_merges": notes.get("merges", {}).get("counts", {}).get("expected_false_merges"),
        "calibration": _kept(run, "calibration", CALIBRATION).to_dicts(),
        "spot_checks": _kept(run, "spot_checks", ESTIMATES).with_columns(iso_expr(pl.col("at"))).to_dicts(),
        "seconds": {step: note["seconds"] for step, note in notes.items()},
        "checks": run.checks(),
        "ingest": {
            key: imported.get(key) for key in ("read", "accepted", "duplicate", "quarantined", "reasons", "errors")
        },
        "encoder": next(iter(_kept(run, "encoder", ENCODERS).to_dicts()), None),
        "policy": facts.policy,
        "extractor": {name: n for name, n in counted.items() if name.startswith("llm_")},
    }


def _kept(run: Run, name: str, schema: Schema) -> pl.DataFrame:
    """A kept frame; without rows where the run ended before it was kept."""
    return run.table(name, schema) if run.has_table(name) else empty(schema)


def _texts(store: Store, run: Run, topics: pl.DataFrame) -> dict[str, Any]:
    notes = run.notes()
    return {
        "explanations": explanations(topics, run.decisions(), run.table("orders", EVICTION_FITS), run.policy),
        "warnings": [
            *(str(error) for error in run.imported().get("errors", [])),
            *folder_warnings(store.home),
            *_not_understood(run),
            *_abstained(notes),
            *over_bound_warnings(over_bound(topics, run.policy), run.policy),
        ],
    }


def _not_understood(run: Run) -> list[str]:
    failures = _kept(run, "extractor", FAILURES)
    effect = "sessions placed without the language model, wholly or in part"
    return [f"{effect}: {sessions:,}, {reason}" for reason, sessions in failures.iter_rows()]


def _abstained(notes: Mapping[str, Any]) -> list[str]:
    counts = notes.get("duplicate_pairs", {}).get("counts", {})
    causes = {
        "abstained": "too many likely duplicates contradict each other for their probabilities to be believed",
        "by_chance": "different topics with one title agree in as much by chance; "
        f"expected number of such pairs: {counts.get('expected_by_chance', 0):,}",
    }
    return [
        f"likely pairs left to review, not merged: {counts[name]:,}, since {cause}"
        for name, cause in causes.items()
        if counts.get(name)
    ]


def merged_rows(decisions: pl.DataFrame, titles: pl.DataFrame) -> pl.DataFrame:
    """The merges among some decisions, as the page lists them; `titles` has topic_id and title."""
    payload = pl.Struct(
        {"survivor": pl.String, **dict.fromkeys(("survivor_title", "dropped_title"), pl.String)}
        | {"probability": pl.Float64, "reading": READING}
    )
    rows = decisions.filter(pl.col("kind") == MERGED).rename({"topic_id": "dropped"})
    decoded = rows.with_columns(_payload=pl.col("payload_json").str.json_decode(payload)).unnest("_payload")
    named = decoded.join(titles.rename({"topic_id": "survivor", "title": "_now"}), on="survivor", how="left")
    named = named.with_columns(survivor_title=pl.coalesce("survivor_title", "_now"))
    texts = pl.Series("reading", [reading_text(row) for row in named["reading"]], dtype=pl.String)
    columns = ("survivor", "survivor_title", "dropped", "dropped_title", "scope", "probability", "reason", "reading")
    return named.with_columns(texts).select(columns)


def moved_rows(decisions: pl.DataFrame, titles: pl.DataFrame, kind: str) -> pl.DataFrame:
    """The archived or restored topics among some decisions, as the page lists them."""
    rows = decisions.filter(pl.col("kind") == kind)
    payload = pl.col("payload_json").str.json_decode(pl.Struct({"salience": pl.Float64}))
    decoded = rows.with_columns(_payload=payload).unnest("_payload").join(titles, on="topic_id", how="left")
    return decoded.select("topic_id", "title", "scope", "salience", "reason")


def growth(store: Store, shard: str) -> pl.DataFrame:
    """The counts of the kept snapshots of a shard, oldest first."""
    kept = [load_snapshot(store.home, shard, number).manifest for number in numbers(store.home, shard)]
    rows = [
        {
            "snapshot": m.number,
            "now": m.now,
            **{key: m.counts[key] for key in ("active", "archived", "merged", "evidence")},
        }
        for m in kept
    ]
    return pl.DataFrame(rows, schema=_GROWTH)
