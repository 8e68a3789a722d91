"""The state hash: SHA-256 over a canonical form of the logical state.

Included: topics, revisions (value, valid time, provenance, reasons, evidence), edges, salience at the
logical time, ladder state, merges. Excluded, since equal histories may differ in them: record times, run
ids, file layout, embedding floats (text hash and model name represent them), the review queue. Derived
facts (which revisions contradict each other) are excluded as well. Detached and pinned items add lines only
if there are any.
"""

from __future__ import annotations

import hashlib

import polars as pl

from memstate_core.model.frames import EDGES, FIELDS, REVISIONS, TOPICS, Schema
from memstate_core.state.graph import EDGE, FIELD, REVISION, TOPIC, Graph

_LEFT_OUT = {
    "recorded_at", "strength", "reinforced_at", "created_at", "updated_at", "conflicts", "rivals", "settled_at",
    "half_life_days", "failed_strength", "summarises", "detached", "pinned",
}  # fmt: skip
_MARKS = (("detached", FIELD, ["topic_id", "name"]), ("detached", EDGE, list(EDGE.key)), ("pinned", TOPIC, ["id"]))
_PARTS: dict[str, Schema] = {"topic": TOPICS, "field": FIELDS, "revision": REVISIONS, "edge": EDGES}


def state_hash(graph: Graph) -> str:
    """The hash of what a graph holds."""
    tables = {"topic": TOPIC, "field": FIELD, "revision": REVISION, "edge": EDGE}
    digest = hashlib.sha256()
    for part, schema in _PARTS.items():
        lines = canonical_lines(part, graph.read(tables[part], [name for name in schema if name not in _LEFT_OUT]))
        digest.update("\n".join(lines).encode())
        digest.update(b"\x1e")
    for name, table, columns in _MARKS:
        marked = graph.read(table, columns, f"r.{name} = true")
        digest.update("\n".join(canonical_lines(f"{name} {table.name}", marked)).encode())
    return digest.hexdigest()


def canonical_lines(part: str, frame: pl.DataFrame) -> list[str]:
    """One line of JSON for each row, sorted; floats to six decimals, null distinct from empty."""
    floats = [name for name, dtype in frame.schema.items() if dtype == pl.Float64]
    moments = [name for name, dtype in frame.schema.items() if isinstance(dtype, pl.Datetime)]
    rounded = frame.with_columns(pl.col(floats).round(6) + 0.0, pl.col(moments).dt.epoch("us").cast(pl.Int64))
    lines = rounded.select(line=pl.lit(f"{part} ") + pl.struct(sorted(frame.columns)).struct.json_encode())
    return lines["line"].sort().to_list()
