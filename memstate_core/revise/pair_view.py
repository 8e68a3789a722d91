"""Pairs of topics side by side, as shown for review."""

from __future__ import annotations

from typing import Any

import polars as pl

from memstate_core.model.frames import conform
from memstate_core.model.graph_tables import TOPICS
from memstate_core.retrieve.facts.facts import TopicSet
from memstate_core.retrieve.reader import SnapshotReader
from memstate_core.retrieve.views.records import topic_records
from memstate_core.run.served_state import Served
from memstate_core.state.graph import TOPIC
from memstate_core.state.ledger.ledger import Ledger

_SHOWN = ("id", "scope", "title", "topic_kind", "summary", "created_at", "updated_at")
_SCORES = ("probability", "weight", "value", "skipped")


def side_by_side(served: Served, pairs: pl.DataFrame) -> list[dict[str, Any]]:
    """Pairs with the content of both topics, in the order of the frame.

    Args:
        served: the shard that holds the topics.
        pairs: columns a, b, probability, weight, value, features, skipped.

    Returns:
        For each pair `probability`, `weight`, `value`, `skipped`, `features` (name, value, weight; by descending
        absolute weight), and for `a` and `b`: `id`, `scope`, `title`, `topic_kind`, `summary`, `fields`
        (current values by name), `keys` (those by which observations named it), `evidence` (number of pieces),
        `created_at`, `updated_at`. Topics that both have keys and share none are merged by a verdict only.
    """
    sides = _sides(served, pl.concat([pairs["a"], pairs["b"]]).unique().sort().to_list())
    return [
        {name: row[name] for name in _SCORES}
        | {
            "features": sorted(row["features"] or [], key=_size, reverse=True),
            "a": sides[row["a"]],
            "b": sides[row["b"]],
        }
        for row in pairs.to_dicts()
        if row["a"] in sides and row["b"] in sides
    ]


def _size(feature: dict[str, Any]) -> float:
    return abs(float(feature["weight"] or 0.0))


def _sides(served: Served, ids: list[str]) -> dict[str, dict[str, Any]]:
    counts = dict(served.evidence_topic.group_by("topic_id").len().iter_rows())
    with SnapshotReader(served.snapshot) as reader:
        topics = conform(reader.graph.read(TOPIC, where="r.id IN $ids", ids=ids), TOPICS)
        older, at = reader.compressed, served.snapshot.manifest.now
        records = list(topic_records(reader.graph, topics, TopicSet.of(ids), older=older, moment=at))
    keys = _keys(served, ids)
    return {
        record["id"]: {name: record[name] for name in _SHOWN}
        | {"fields": {name: field["history"][0]["value"] for name, field in record["fields"].items()}}
        | {"keys": keys.get(record["id"], []), "evidence": counts.get(record["id"], 0)}
        for record in records
    }


def _keys(served: Served, ids: list[str]) -> dict[str, list[str]]:
    """The keys by which observations named some topics, by topic."""
    mine = served.evidence_topic.filter(pl.col("topic_id").is_in(ids)).select("evidence_id", topic="topic_id")
    wanted = pl.col("topic_key").is_not_null() & pl.col("evidence_id").is_in(mine["evidence_id"].implode())
    ledger = Ledger(served.snapshot.home.ledger)
    with ledger.damage_named():
        rows = ledger.scan("evidence", served.snapshot.manifest.evidence_version)
        named = rows.filter(wanted).select("evidence_id", "topic_key").collect().join(mine, on="evidence_id")
    return dict(named.group_by("topic").agg(pl.col("topic_key").unique().sort()).iter_rows())
