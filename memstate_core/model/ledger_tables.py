"""The columns of the ledger's tables, and of the decisions that steps make for them."""

from __future__ import annotations

import polars as pl

from memstate_core.model.frames import MOMENT, Schema

FIELD_VALUE = pl.Struct(
    {
        "name": pl.String,
        "value_json": pl.String,
        "field_type": pl.String,
        "ref_given": pl.Boolean,
        "ref_topic_id": pl.String,
        "why_changed": pl.String,
        "impact_expected": pl.String,
        "confidence": pl.Float64,
        "valid_from": MOMENT,
    }
)

EDGE_TO = pl.Struct(
    {
        "kind": pl.String,
        "to_topic_id": pl.String,
        "to_topic_key": pl.String,
        "valid_from": MOMENT,
        "valid_until": MOMENT,
    }
)

EVIDENCE: Schema = {
    "evidence_id": pl.String,
    "observation_id": pl.String,
    "scope": pl.String,
    "kind": pl.String,
    "actor": pl.String,
    "session_id": pl.String,
    "turn": pl.Int64,
    "observed_at": MOMENT,
    "provenance": pl.String,
    "source_uri": pl.String,
    "text": pl.String,
    "payload_json": pl.String,
    "content_sha256": pl.String,
    "imported_at": MOMENT,
    "run_id": pl.String,
    "placement": pl.String,
    "topic_id": pl.String,
    "topic_key": pl.String,
    "topic_kind": pl.String,
    "title": pl.String,
    "summary": pl.String,
    "fields": pl.List(FIELD_VALUE),
    "edges": pl.List(EDGE_TO),
}
"""The ledger's table of accepted observations: the outer record, then a typed view of its payload."""

QUARANTINE: Schema = {
    "quarantine_id": pl.String,
    "file": pl.String,
    "line": pl.Int64,
    "reason": pl.String,
    "detail": pl.String,
    "raw": pl.Binary,
    "raw_bytes": pl.Int64,
    "raw_sha256": pl.String,
    "imported_at": MOMENT,
    "run_id": pl.String,
}
"""Rows that were refused. `raw` holds the bytes as found, cut at a megabyte for a line too long to read."""

QUARANTINE_ACTIONS: Schema = {
    "quarantine_id": pl.String,
    "action": pl.String,
    "reason": pl.String,
    "at": MOMENT,
    "run_id": pl.String,
}
"""What was done about refused rows: `action` is `replayed` or `dismissed`."""

TRANSITIONS: Schema = {
    "seq": pl.Int64,
    "shard": pl.String,
    "run_id": pl.String,
    "at": MOMENT,
    "kind": pl.String,
    "scope": pl.String,
    "topic_id": pl.String,
    "payload_json": pl.String,
    "evidence_ids": pl.List(pl.String),
    "reason": pl.String,
    "policy": pl.String,
}
"""Recorded decisions, in order."""

DECISION: Schema = {
    "kind": pl.String,
    "scope": pl.String,
    "topic_id": pl.String,
    "payload_json": pl.String,
    "evidence_ids": pl.List(pl.String),
    "reason": pl.String,
}
"""A transition as a step makes it; seq, shard, run, time and policy are added when the run ends."""

ACCESSES: Schema = {
    "access_id": pl.String,
    "scope": pl.String,
    "topic_id": pl.String,
    "fields": pl.List(pl.String),
    "at": MOMENT,
    "source": pl.String,
    "failed": pl.Boolean,
    "recorded_at": MOMENT,
    "run_id": pl.String,
}
"""Accesses to topics, as the query side recorded them.

`fields` names the accessed fields (null: the whole topic, so all of them); `failed` marks feedback that the returned
values were of no use. `scope` is null where the query side did not know it.
"""
