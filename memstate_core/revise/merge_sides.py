"""Both topics of a merge as they would be apart, for people who check it: folded from the evidence of each."""

from __future__ import annotations

from typing import Any

import polars as pl
from msgspec import json as msgjson

from memstate_core.model.step_frames import EVIDENCE_TOPIC
from memstate_core.model.text import iso
from memstate_core.policy.settings import Policy
from memstate_core.revise.merge_history import merge_list
from memstate_core.run.served_state import Served
from memstate_core.run.store import Store
from memstate_core.state.fold.assertions import STATING, assertions
from memstate_core.state.fold.decisions import segments
from memstate_core.state.fold.history import in_order, revisions, topic_parts

_SHOWN = ("probability", "today", "drawn_from", "doubted", "run_id")


def merged_pairs(store: Store, served: Served, checks: pl.DataFrame) -> list[dict[str, Any]]:
    """Merges with the content of both topics, in the order of the frame.

    A merge of which one topic has no evidence left, since all was set aside, is left out.

    Args:
        store: the store.
        served: the shard that holds the topics.
        checks: columns CHECKS of merges in force.

    Returns:
        For each merge `merge` (its id), `at`, `run_id`, `probability` (when it was made), `today` (under the last
        model), `drawn_from`, `doubted`, `skipped`, `features`, and for `a` (the topic merged away) and `b` (the one
        that it was merged into, without it) what `pair_view.side_by_side` gives.
    """
    if checks.is_empty():
        return []
    sides = _sides(store, served, checks)
    return [
        {"merge": row["id"], "at": iso(row["at"]), "skipped": row["verdict"] is not None}
        | {name: row[name] for name in _SHOWN}
        | {"features": sorted(row["features"] or [], key=lambda feature: -abs(feature["weight"] or 0.0))}
        | {"a": sides[row["dropped"], row["id"]], "b": sides[row["survivor"], row["id"]]}
        for row in checks.to_dicts()
        if {(row["dropped"], row["id"]), (row["survivor"], row["id"])} <= sides.keys()
    ]


def _sides(store: Store, served: Served, checks: pl.DataFrame) -> dict[tuple[str, str], dict[str, Any]]:
    """The documents of both sides of merges, by topic and merge."""
    split = _split(served, checks)
    evidence = store.ledger.scan("evidence", served.snapshot.manifest.evidence_version)
    wanted = pl.col("evidence_id").is_in(split["evidence_id"].unique().implode())
    rows = evidence.filter(wanted).select(STATING).collect()
    stated = assertions(rows, split.select(EVIDENCE_TOPIC.keys()), _segments(served, split))
    histories = revisions(in_order(stated, Policy.recorded(served.snapshot.manifest.policy)))
    names = served.topics.select("id", named="title")
    known = _extent(rows, split).join(topic_parts(histories), on="topic_id", how="left").join(names, on="id")
    known = known.join(_values(histories), on="topic_id", how="left")
    return {(row["id"], row["merge"]): _document(row) for row in known.to_dicts()}


def _extent(rows: pl.DataFrame, split: pl.DataFrame) -> pl.DataFrame:
    """How much evidence each side has, and from when to when."""
    held = split.join(rows.select("evidence_id", at="observed_at"), on="evidence_id")
    return held.group_by("topic_id", "scope", "id", "merge").agg(
        evidence=pl.len(), created=pl.col("at").min(), last=pl.col("at").max()
    )


def _values(histories: pl.DataFrame) -> pl.DataFrame:
    """The current fields of each side (columns topic_id, values)."""
    fields = histories.filter((pl.col("part") == "field") & (pl.col("rank") == 0))
    return fields.group_by("topic_id").agg(values=pl.struct("name", "value_json").sort())


def _document(row: dict[str, Any]) -> dict[str, Any]:
    shown = {name: row.get(name) for name in ("id", "scope", "title", "topic_kind", "summary")}
    shown["title"] = shown["title"] or row["named"]
    fields = {field["name"]: msgjson.decode(field["value_json"]) for field in row["values"] or []}
    dates = {"created_at": iso(row["created"]), "updated_at": iso(row["last"])}
    return shown | dates | {"fields": fields, "evidence": row["evidence"]}


def _split(served: Served, checks: pl.DataFrame) -> pl.DataFrame:
    """The evidence of both sides of merges, each side a topic of its own.

    Returns:
        Columns EVIDENCE_TOPIC (topic_id names the side), id (of the topic that the side stands for), merge.
    """
    listed = merge_list(served).join(checks.select("id"), on="id", how="semi")
    away = listed.select("scope", "into", merge="id", id="dropped", evidence_id="evidence_ids").explode("evidence_id")
    whole = served.evidence_topic.select("evidence_id", into="topic_id")
    away = away.join(whole, on=["evidence_id", "into"], how="semi")
    rest = listed.select("scope", "into", merge="id", id="survivor").join(whole, on="into")
    rest = rest.join(away, on=["merge", "evidence_id"], how="anti")
    both = pl.concat([away.select(rest.columns), rest])
    return both.select("evidence_id", "scope", "id", "merge", topic_id=pl.format("{} {}", "merge", "id")).select(
        *EVIDENCE_TOPIC, "id", "merge"
    )


def _segments(served: Served, split: pl.DataFrame) -> pl.DataFrame:
    """The segments whose evidence is on a side (columns SEGMENTS), with the side as their topic."""
    recorded = segments(served.transitions).with_row_index("segment")
    first = recorded.select("segment", evidence_id=pl.col("evidence_ids").list.first())
    placed = first.join(split.select("evidence_id", _side="topic_id"), on="evidence_id").select("segment", "_side")
    moved = recorded.join(placed, on="segment").with_columns(topic_id="_side")
    return moved.drop("segment", "_side")
