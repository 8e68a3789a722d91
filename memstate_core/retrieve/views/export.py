"""Export: every topic with its whole history.

Topics are read in order of their ids, in chunks; each chunk takes one statement a table.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl
from msgspec import json as msgjson

from memstate_core.model.frames import Schema
from memstate_core.model.progress import tracked
from memstate_core.retrieve.facts.facts import TopicSet
from memstate_core.retrieve.reader import SnapshotReader
from memstate_core.retrieve.views.records import Record, topic_records
from memstate_core.state.graph import TOPIC

CHUNK = 10_000
_JSON_COLUMNS = {"fields": "fields_json", "topic_history": "topic_history_json", "edges": "edges_json"}
PARQUET: Schema = {
    "id": pl.String,
    "scope": pl.String,
    "title": pl.String,
    "summary": pl.String,
    "topic_kind": pl.String,
    "salience": pl.Float64,
    "failed_salience": pl.Float64,
    "fields_json": pl.String,
    "topic_history_json": pl.String,
    "edges_json": pl.String,
    "embedding_model": pl.String,
    "text_hash": pl.String,
    "state": pl.String,
    "archived": pl.Boolean,
    "pinned": pl.Boolean,
    "merged_into": pl.String,
    "created_at": pl.String,
    "updated_at": pl.String,
    "observation_ids": pl.List(pl.String),
    "merged_from": pl.List(pl.String),
}
"""The columns of a Parquet export: the record of a topic, with histories and edges as JSON."""


def export_records(readers: Sequence[SnapshotReader]) -> Iterator[Record]:
    """Every topic in every state, shard by shard and by id.

    Yields:
        The record of a topic (`memstate_core.retrieve.views.records`) with whole histories (summaries expanded),
        `observation_ids` (all its evidence by time; none for a tombstone) and `merged_from` (the tombstones
        that lead to it).
    """
    for reader in readers:
        topics = reader.graph.read(TOPIC).sort("id")
        merged = _tombstones(topics)
        for chunk in tracked(topics.iter_slices(CHUNK), "export", topics.height, "topics", len):
            yield from _chunk_records(reader, chunk, merged)


def export_jsonl(readers: Sequence[SnapshotReader]) -> Iterator[bytes]:
    """`export_records` as JSON Lines in UTF-8, each with its line feed."""
    return (json.dumps(record, ensure_ascii=False).encode() + b"\n" for record in export_records(readers))


def export_parquet(readers: Sequence[SnapshotReader], path: Path) -> int:
    """Writes `export_records` as one Parquet file (columns PARQUET); answers how many topics it holds."""
    rows = [_flat(record) for record in export_records(readers)]
    pl.DataFrame(rows, schema=PARQUET, orient="row").write_parquet(path, compression="zstd")
    return len(rows)


def _chunk_records(reader: SnapshotReader, chunk: pl.DataFrame, merged: pl.DataFrame) -> Iterator[Record]:
    low, high = chunk["id"][0], chunk["id"][-1]
    observations = _observations(reader, low, high)
    tombstones = dict(merged.filter(pl.col("survivor").is_between(pl.lit(low), pl.lit(high))).rows())
    within = TopicSet.between(low, high)
    for record in topic_records(reader.graph, chunk, within, history=True, older=reader.compressed):
        topic_id = record["id"]
        yield record | {
            "observation_ids": observations.get(topic_id, []),
            "merged_from": tombstones.get(topic_id, []),
        }


def _observations(reader: SnapshotReader, low: str, high: str) -> dict[str, list[str]]:
    """Observation ids by topic, in the order in which they were observed."""
    evidence = reader.all_evidence().filter(pl.col("topic_id").is_between(pl.lit(low), pl.lit(high)))
    by_time = evidence.select("topic_id", "observed_at", "evidence_id", "observation_id").sort(
        "observed_at", "evidence_id"
    )
    return dict(by_time.group_by("topic_id", maintain_order=True).agg("observation_id").collect().rows())


def _tombstones(topics: pl.DataFrame) -> pl.DataFrame:
    """`survivor` and `merged_from`: chains of merges followed to their end."""
    step = topics.filter(pl.col("merged_into").is_not_null()).select("id", survivor="merged_into")
    leads = step
    for _ in range(step.height.bit_length()):
        further = leads.join(leads, left_on="survivor", right_on="id", how="left", suffix="_next")
        leads = further.select("id", survivor=pl.coalesce("survivor_next", "survivor"))
    return leads.sort("survivor", "id").group_by("survivor", maintain_order=True).agg(merged_from="id")


def _flat(record: Record) -> Record:
    return record | {column: msgjson.encode(record[name]).decode() for name, column in _JSON_COLUMNS.items()}
