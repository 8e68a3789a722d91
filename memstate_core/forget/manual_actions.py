"""What a person decides about forgetting: to bring topics back, to keep them for ever, to let them go again."""

from __future__ import annotations

from datetime import datetime

import polars as pl

from memstate_core.model.frames import DECISION, MOMENT, conform
from memstate_core.model.text import iso_expr
from memstate_core.run.served_state import Served
from memstate_core.state.decisions import ATTACHED, EXPANDED, PINNED, RESTORED, UNPINNED
from memstate_core.state.ladder_state import rungs

PERSON = "person"


def restore_decisions(
    served: Served, topic_ids: list[str], reason: str, used_at: datetime | None = None
) -> pl.DataFrame:
    """What brings topics back up the ladder (columns DECISION; none for those that are all there).

    Archived topics are restored, detached fields and links attached, summaries expanded. With each stands when
    the last event concerned the topic: the ladder leaves it alone until another one does.

    Args:
        served: the shard of the topics.
        topic_ids: living topics of it.
        reason: why.
        used_at: when the person used them, which is no event that ends the hold; None if they did not.
    """
    stand = rungs(served.transitions)
    topics = served.topics.filter(pl.col("id").is_in(topic_ids)).rename({"id": "topic_id"})
    fields = pl.col("name").unique().sort()
    links = pl.struct(to="to_id", kind="kind")
    back = [
        topics.filter(pl.col("state") == "archived").with_columns(kind=pl.lit(RESTORED)),
        _with(topics, stand.fields.group_by("topic_id").agg(fields=fields), ATTACHED),
        _with(topics, stand.edges.group_by(topic_id="from_id").agg(edges=links), ATTACHED),
        _with(topics, stand.summaries.group_by("topic_id").agg(fields=fields), EXPANDED),
    ]
    last = iso_expr(pl.max_horizontal("reinforced_at", pl.lit(used_at, MOMENT)))
    return pl.concat([_decided(rows, reason, last) for rows in back])


def pin_decisions(served: Served, topic_ids: list[str], *, on: bool) -> pl.DataFrame:
    """What pins topics, or lets go of them (columns DECISION; none for those of which it holds already)."""
    topics = served.topics.filter(pl.col("id").is_in(topic_ids) & (pl.col("pinned") != on)).rename({"id": "topic_id"})
    if not on:  # a pin may stand on a topic that was merged into this one
        pins = rungs(served.transitions).pins.with_columns(_of=served.answering(pl.col("topic_id")))
        topics = pins.join(topics.select("scope", _of="topic_id"), on="_of")
    rows = topics.with_columns(kind=pl.lit(PINNED if on else UNPINNED))
    payload = pl.struct(actor=pl.lit(PERSON)).struct.json_encode()
    told = "a person wants it kept" if on else "a person lets it go again"
    return conform(rows.with_columns(payload_json=payload, reason=pl.lit(told)).sort("topic_id"), DECISION)


def _with(topics: pl.DataFrame, parts: pl.DataFrame, kind: str) -> pl.DataFrame:
    return topics.join(parts, on="topic_id").with_columns(kind=pl.lit(kind))


def _decided(rows: pl.DataFrame, reason: str, last: pl.Expr) -> pl.DataFrame:
    parts = [name for name in ("fields", "edges") if name in rows.columns]
    payload = pl.struct("salience", *parts, actor=pl.lit(PERSON), last_event_at=last).struct.json_encode()
    return conform(rows.with_columns(payload_json=payload, reason=pl.lit(reason)).sort("topic_id"), DECISION)
