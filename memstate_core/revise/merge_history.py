"""Merge history: every recorded merge with its reasons, and whether it is still in force."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from memstate_core.model.frames import MOMENT, Schema, project
from memstate_core.model.ids import uuid_expr
from memstate_core.model.step_frames import PAIRS
from memstate_core.model.text import iso_expr
from memstate_core.revise.reading_text import READING, reading_text
from memstate_core.run.served_state import Served
from memstate_core.state.fold.decisions import MERGED, MOVED, SEGMENT_PLACED, UNMERGED, merges

MERGE_LIST: Schema = {
    "seq": pl.Int64,
    "id": pl.String,
    "at": MOMENT,
    "run_id": pl.String,
    "scope": pl.String,
    "dropped": pl.String,
    "dropped_title": pl.String,
    "survivor": pl.String,
    "survivor_title": pl.String,
    "into": pl.String,
    "into_title": pl.String,
    "probability": pl.Float64,
    "weight": pl.Float64,
    "features": PAIRS["features"],
    "comparison": READING,
    "partner": pl.String,
    "evidence_ids": pl.List(pl.String),
    "reason": pl.String,
    "actor": pl.String,
    "undone": pl.Boolean,
    "undone_at": MOMENT,
}
"""A recorded merge: survivor as decided, titles of both as they were (the survivor's is today's in merges that older
versions recorded), `into` the topic that the dropped one resolves to today, features by
descending absolute weight, evidence of the dropped topic and of those merged into it. Features and `comparison` (the
reading, null where none is recorded) are of the dropped topic and its `partner`."""

NIGHTLY = "nightly run"
"""The actor of a merge that no person decided."""

_PAYLOAD = pl.Struct(
    {
        "survivor": pl.String,
        "survivor_title": pl.String,
        "dropped_title": pl.String,
        "probability": pl.Float64,
        "weight": pl.Float64,
        "features": PAIRS["features"],
        "reading": READING,
        "partner": pl.String,
        "actor": pl.String,
    }
)


def merge_id(dropped: str | pl.Expr, survivor: str | pl.Expr, run_id: str | pl.Expr) -> pl.Expr:
    """The public id of a merge: the same for the same topics and run."""
    return uuid_expr("merge", dropped, survivor, run_id)


def merge_list(served: Served) -> pl.DataFrame:
    """Every merge that a shard's ledger records, newest first (columns MERGE_LIST)."""
    made = pl.concat([_with_end(served.transitions), _rolled_back(served)])
    payload = made.with_columns(_payload=pl.col("payload_json").str.json_decode(_PAYLOAD)).unnest("_payload")
    payload = payload.with_columns(
        comparison=pl.when(pl.col("reading").struct.field("agree").is_not_null()).then("reading")
    )
    titles = served.topics.select("id", "title")
    named = (
        payload.rename({"topic_id": "dropped"})
        .with_columns(into=served.answering(pl.col("dropped")))
        .join(titles.rename({"id": "survivor", "title": "_today"}), on="survivor", how="left")
        .with_columns(survivor_title=pl.coalesce("survivor_title", "_today"))
        .join(titles.rename({"id": "into", "title": "into_title"}), on="into", how="left")
        .drop("evidence_ids")
        .join(_evidence(served.transitions), on="dropped", how="left")
    )
    size = pl.element().struct.field("weight").abs()
    rows = named.with_columns(
        id=merge_id(pl.col("dropped"), pl.col("survivor"), pl.col("run_id")),
        features=pl.col("features").fill_null([]).list.eval(pl.element().sort_by(size, descending=True)),
        evidence_ids=pl.col("evidence_ids").fill_null([]),
        actor=pl.col("actor").fill_null(NIGHTLY),
    )
    return project(rows.sort("seq", descending=True), MERGE_LIST)


def merge_documents(
    shards: Sequence[Served], *, undone_too: bool = False, topic: str | None = None
) -> list[dict[str, Any]]:
    """The merges of some shards as documents, newest first.

    Args:
        shards: the shards.
        undone_too: include undone merges.
        topic: only merges that dropped this topic, that it survived, or that resolve to it today.

    Returns:
        `{id, at, run_id, scope, dropped: {id, title}, survivor: {id, title}, into: {id, title}, probability,
        weight, features: [{name, value, weight}], reading, comparison, partner, evidence_ids, reason, actor, undone,
        undone_at}`. `reading` is the text of `comparison`: `{agree: [name], differ: [{name, dropped, partner}],
        only: [name], shared, shared_by, shared_in_group}`; both are null where the merge records none.
    """
    rows = pl.concat([pl.DataFrame(schema=MERGE_LIST), *map(merge_list, shards)])
    if not undone_too:
        rows = rows.filter(~pl.col("undone"))
    if topic is not None:
        rows = rows.filter(pl.any_horizontal(pl.col("dropped", "survivor", "into") == topic))
    ends = [pl.struct(id=end, title=f"{end}_title").alias(end) for end in ("dropped", "survivor", "into")]
    documents = rows.with_columns(*ends, iso_expr(pl.col("at")), iso_expr(pl.col("undone_at")))
    ordered = documents.sort("seq", descending=True).drop("seq", "dropped_title", "survivor_title", "into_title")
    return [row | {"reading": reading_text(row["comparison"])} for row in ordered.to_dicts()]


def _with_end(transitions: pl.DataFrame) -> pl.DataFrame:
    """Merges, each with whether and when it ended: by the next decision on the same topic."""
    rows = transitions.filter(pl.col("kind").is_in([MERGED, UNMERGED])).sort("seq")
    ended = pl.col("at").shift(-1).over("topic_id")
    undone = pl.col("kind").shift(-1).over("topic_id").is_not_null()
    return rows.with_columns(undone_at=ended, undone=undone).filter(pl.col("kind") == MERGED)


def _rolled_back(served: Served) -> pl.DataFrame:
    """Merges that rollbacks undid, as `_with_end` gives merges."""
    rows = served.rolled_back.filter(pl.col("kind") == MERGED)
    return rows.rename({"rolled_back_at": "undone_at"}).with_columns(undone=pl.lit(True))


def _evidence(transitions: pl.DataFrame) -> pl.DataFrame:
    """The evidence of each dropped topic and of those merged into it (columns dropped, evidence_ids)."""
    placed = transitions.filter(pl.col("kind").is_in(["placed", SEGMENT_PLACED, MOVED])).sort("seq")
    own = placed.select("topic_id", evidence_id="evidence_ids").explode("evidence_id", empty_as_null=True)
    own = own.unique("evidence_id", keep="last").drop_nulls()
    dropped = transitions.filter(pl.col("kind") == MERGED).select(dropped="topic_id", topic_id="topic_id").unique()
    inside = pl.concat([dropped, _held(transitions)]).unique()
    return inside.join(own, on="topic_id").group_by("dropped").agg(evidence_ids=pl.col("evidence_id").unique().sort())


def _held(transitions: pl.DataFrame) -> pl.DataFrame:
    """Topics merged into a dropped one by merges in force, directly or through others (columns dropped, topic_id)."""
    step = merges(transitions).select(dropped="survivor", topic_id="dropped")
    reached = frontier = step
    while frontier.height:
        frontier = frontier.join(step.rename({"dropped": "topic_id", "topic_id": "_next"}), on="topic_id")
        frontier = frontier.select("dropped", topic_id="_next")
        reached = pl.concat([reached, frontier])
    return reached
