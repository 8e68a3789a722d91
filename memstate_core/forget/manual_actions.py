"""Manual actions on the ladder: a person restores topics, pins them or unpins them."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import polars as pl

from memstate_core.model.frames import MOMENT, project
from memstate_core.model.ledger_tables import DECISION
from memstate_core.model.text import iso_expr
from memstate_core.run.run import GRAPH_FILE
from memstate_core.run.served_state import Served
from memstate_core.state.fold.decisions import ATTACHED, EXPANDED, PERSON, PINNED, RESTORED, UNPINNED
from memstate_core.state.fold.ladder_state import LadderState, ladder_state
from memstate_core.state.graph import FIELD, open_graph


def restore_decisions(
    served: Served, topic_ids: list[str], reason: str, used_at: datetime | None = None
) -> pl.DataFrame:
    """Decisions that reverse every step taken on some topics (columns DECISION; none where none was taken).

    Archived topics are restored, detached fields and edges attached, summaries expanded. Each decision records the time
    of the topic's last event: the ladder leaves the topic alone until the next one.

    Args:
        served: the shard of the topics.
        topic_ids: topics of it that are not tombstones.
        reason: the reason to record.
        used_at: the time of an access that goes with this action and does not end the hold; None without one.
    """
    topics = served.topics.filter(pl.col("id").is_in(topic_ids))
    return reversals(served, existing(served, ladder_state(served.transitions)), reason, topics, used_at)


def reversals(
    served: Served,
    ladder: LadderState,
    reason: str,
    topics: pl.DataFrame | None = None,
    used_at: datetime | None = None,
) -> pl.DataFrame:
    """Decisions that reverse steps of the ladder, as of `restore_decisions`.

    Args:
        served: the shard of the topics.
        ladder: the steps.
        reason: the reason to record.
        topics: the topics whose steps are reversed (rows of the served topics); None for all.
        used_at: as of `restore_decisions`.
    """
    topics = (served.topics if topics is None else topics).rename({"id": "topic_id"})
    fields = pl.col("name").unique().sort()
    edges = pl.struct(to="to_id", kind="kind")
    back = [
        _with(topics, ladder.archived.unique(), RESTORED),
        _with(topics, ladder.fields.group_by("topic_id").agg(fields=fields), ATTACHED),
        _with(topics, ladder.edges.group_by(topic_id="from_id").agg(edges=edges), ATTACHED),
        _with(topics, ladder.summaries.group_by("topic_id").agg(fields=fields), EXPANDED),
    ]
    last = iso_expr(pl.max_horizontal("reinforced_at", pl.lit(used_at, MOMENT)))
    return pl.concat([_decided(rows, reason, last) for rows in back])


def existing(served: Served, ladder: LadderState) -> LadderState:
    """The steps without those on fields that a topic no longer has, since all its evidence of them was erased."""
    if ladder.fields.is_empty():
        return ladder
    with open_graph(served.snapshot.path / GRAPH_FILE, read_only=True) as graph:
        known = graph.read(FIELD, ["topic_id", "name"])
    living = served.topics.filter(pl.col("merged_into").is_null()).select(topic_id="id")
    lost = ladder.fields.join(living, on="topic_id", how="semi").join(known, on=["topic_id", "name"], how="anti")
    return replace(ladder, fields=ladder.fields.join(lost, on=["topic_id", "name"], how="anti"))


def pin_decisions(served: Served, topic_ids: list[str], *, on: bool) -> pl.DataFrame:
    """Decisions that pin or unpin topics (columns DECISION; none for topics that already are as asked)."""
    topics = served.topics.filter(pl.col("id").is_in(topic_ids) & (pl.col("pinned") != on)).rename({"id": "topic_id"})
    if not on:  # the pin may have been set on a topic that was merged into this one
        pins = ladder_state(served.transitions).pins.with_columns(_of=served.answering(pl.col("topic_id")))
        topics = pins.join(topics.select("scope", _of="topic_id"), on="_of")
    rows = topics.with_columns(kind=pl.lit(PINNED if on else UNPINNED))
    payload = pl.struct(actor=pl.lit(PERSON)).struct.json_encode()
    reason = "pinned by a person" if on else "unpinned by a person"
    return project(
        rows.with_columns(payload_json=payload, reason=pl.lit(reason)).sort("topic_id"),
        DECISION,
        nulls=("evidence_ids",),
    )


def _with(topics: pl.DataFrame, parts: pl.DataFrame, kind: str) -> pl.DataFrame:
    return topics.join(parts, on="topic_id").with_columns(kind=pl.lit(kind))


def _decided(rows: pl.DataFrame, reason: str, last: pl.Expr) -> pl.DataFrame:
    parts = [name for name in ("fields", "edges") if name in rows.columns]
    payload = pl.struct("salience", *parts, actor=pl.lit(PERSON), last_event_at=last).struct.json_encode()
    return project(
        rows.with_columns(payload_json=payload, reason=pl.lit(reason)).sort("topic_id"),
        DECISION,
        nulls=("evidence_ids",),
    )
