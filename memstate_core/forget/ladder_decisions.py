"""Steps of the ladder as recorded decisions, one row a topic, whatever number of its fields it concerns."""

from __future__ import annotations

import polars as pl

from memstate_core.model.frames import DECISION, conform


def decided(rows: pl.DataFrame, kind: str) -> pl.DataFrame:
    """Decisions about topics (columns DECISION).

    Args:
        rows: columns topic_id, scope, salience, by, active (topics of the scope that the ladder saw), reason.
        kind: what is done.
    """
    payload = pl.struct("salience", "by", "active").struct.json_encode()
    return conform(rows.with_columns(kind=pl.lit(kind), payload_json=payload), DECISION)


def decided_fields(rows: pl.DataFrame, kind: str, keep: int | None = None) -> pl.DataFrame:
    """Decisions about fields, those of a topic in one (columns DECISION).

    Args:
        rows: columns topic_id, scope, name, salience, reason; the reason kept is that of the least salient.
        kind: what is done.
        keep: how many revisions a summary leaves as they are.
    """
    named = rows.sort("topic_id", "salience", "name").group_by("topic_id", maintain_order=True)
    grouped = named.agg(pl.col("scope", "reason", "salience").first(), fields=pl.col("name").sort())
    payload = pl.struct("salience", "fields", keep=pl.lit(keep, pl.Int64)).struct.json_encode()
    return conform(grouped.with_columns(kind=pl.lit(kind), payload_json=payload), DECISION)


def decided_links(rows: pl.DataFrame, kind: str) -> pl.DataFrame:
    """Decisions about links, those that start at a topic in one (columns DECISION).

    Args:
        rows: columns topic_id (where the link starts), scope, to_id, kind, salience, reason.
        kind: what is done.
    """
    named = rows.sort("topic_id", "salience", "to_id", "kind").group_by("topic_id", maintain_order=True)
    link = pl.struct(to="to_id", kind="kind")
    grouped = named.agg(pl.col("scope", "reason", "salience").first(), edges=link)
    payload = pl.struct("salience", "edges").struct.json_encode()
    return conform(grouped.with_columns(kind=pl.lit(kind), payload_json=payload), DECISION)
