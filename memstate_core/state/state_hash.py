"""The state hash: SHA-256 over a canonical form of the logical state.

Included: topics, revisions (value, valid time, provenance, reasons, evidence), edges, salience at the
logical time, ladder state, merges. Excluded, since equal histories may differ in them: record times, run
ids, file layout, embedding floats (text hash and model name represent them), the review queue. Derived
facts (which revisions contradict each other) are excluded as well. Detached and pinned items add lines only
if there are any.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import polars as pl

from memstate_core.state.graph import EDGE, FIELD, REVISION, TOPIC
from memstate_core.state.kept_tables import Rows

_LEFT_OUT = {
    "recorded_at", "strength", "reinforced_at", "created_at", "updated_at", "conflicts", "rivals", "settled_at",
    "half_life_days", "failed_strength", "summarises", "detached", "pinned",
}  # fmt: skip
_MARKS = (
    ("detached", "field", ["topic_id", "name"]),
    ("detached", "edge", list(EDGE.key)),
    ("pinned", "topic", ["id"]),
)
_PARTS = {"topic": TOPIC, "field": FIELD, "revision": REVISION, "edge": EDGE}


def state_hash(graph: Rows) -> str:
    """The hash of what a graph holds."""
    digest = hashlib.sha256()
    marked: dict[tuple[str, str], pl.DataFrame] = {}
    for part, table in _PARTS.items():
        marks = {name: columns for name, of, columns in _MARKS if of == part}
        rows = graph.read(table, [name for name in table.schema if name not in _LEFT_OUT or name in marks])
        marked |= {(name, part): rows.filter(name).select(columns) for name, columns in marks.items()}
        digest.update("\n".join(canonical_lines(part, rows.drop(list(marks)))).encode())
        digest.update(b"\x1e")
    for name, part, _ in _MARKS:
        digest.update("\n".join(canonical_lines(f"{name} {_PARTS[part].name}", marked[name, part])).encode())
    return digest.hexdigest()


def canonical_lines(part: str, frame: pl.DataFrame) -> list[str]:
    """One line of JSON for each row, sorted; floats to six decimals, null distinct from empty."""
    return _lines(part, frame).sort().to_list()


def scope_hashes(tables: Mapping[str, pl.DataFrame]) -> dict[str, str]:
    """The hash of the state of each scope, over what `state_hash` includes.

    Args:
        tables: the rows of topics, fields, revisions and edges, by the name of their table.
    """
    scopes = tables[TOPIC.name].select("scope", _owner="id")
    left_out = _LEFT_OUT - {name for name, _, _ in _MARKS}
    parts = []
    for part, table in _PARTS.items():
        rows = tables[table.name]
        stated = [name for name in table.schema if name not in left_out]
        lines = rows.select(_owner=table.owner).with_columns(line=_lines(part, rows.select(stated)))
        parts.append(lines.join(scopes, on="_owner").select("scope", "line"))
    grouped = pl.concat(parts).sort("scope", "line").group_by("scope").agg(pl.col("line").str.join("\n"))
    return {scope: hashlib.sha256(lines.encode()).hexdigest() for scope, lines in grouped.iter_rows()}


def _lines(part: str, frame: pl.DataFrame) -> pl.Series:
    floats = [name for name, dtype in frame.schema.items() if dtype == pl.Float64]
    moments = [name for name, dtype in frame.schema.items() if isinstance(dtype, pl.Datetime)]
    rounded = frame.with_columns(pl.col(floats).round(6) + 0.0, pl.col(moments).dt.epoch("us").cast(pl.Int64))
    lines = rounded.select(line=pl.lit(f"{part} ") + pl.struct(sorted(frame.columns)).struct.json_encode())
    return lines["line"]
