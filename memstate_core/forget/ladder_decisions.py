"""Steps of the ladder as recorded decisions: one row a topic, however many of its fields or edges it concerns."""

from __future__ import annotations

import polars as pl

from memstate_core.model.frames import project
from memstate_core.model.ledger_tables import DECISION


def topic_decisions(rows: pl.DataFrame, kind: str) -> pl.DataFrame:
    """Decisions about topics (columns DECISION).

    Args:
        rows: columns topic_id, scope, salience, by, active (active topics of the scope before the step), reason.
        kind: the kind of the decision.
    """
    payload = pl.struct("salience", "by", "active").struct.json_encode()
    return project(rows.with_columns(kind=pl.lit(kind), payload_json=payload), DECISION, nulls=("evidence_ids",))


def field_decisions(rows: pl.DataFrame, kind: str, keep: int | None = None) -> pl.DataFrame:
    """Decisions about fields, one a topic (columns DECISION).

    Args:
        rows: columns topic_id, scope, name, salience, reason; the decision has the reason of the least salient field.
        kind: the kind of the decision.
        keep: how many revisions a summary keeps.
    """
    named = rows.sort("topic_id", "salience", "name").group_by("topic_id", maintain_order=True)
    grouped = named.agg(pl.col("scope", "reason", "salience").first(), fields=pl.col("name").sort())
    payload = pl.struct("salience", "fields", keep=pl.lit(keep, pl.Int64)).struct.json_encode()
    return project(grouped.with_columns(kind=pl.lit(kind), payload_json=payload), DECISION, nulls=("evidence_ids",))


def edge_decisions(rows: pl.DataFrame, kind: str) -> pl.DataFrame:
    """Decisions about edges, one for each topic where edges start (columns DECISION).

    Args:
        rows: columns topic_id (where the edge starts), scope, to_id, kind, salience, reason.
        kind: the kind of the decision.
    """
    named = rows.sort("topic_id", "salience", "to_id", "kind").group_by("topic_id", maintain_order=True)
    edge = pl.struct(to="to_id", kind="kind")
    grouped = named.agg(pl.col("scope", "reason", "salience").first(), edges=edge)
    payload = pl.struct("salience", "edges").struct.json_encode()
    return project(grouped.with_columns(kind=pl.lit(kind), payload_json=payload), DECISION, nulls=("evidence_ids",))
