"""Undo of decisions: merges, steps down the ladder of forgetting, stale marks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from memstate_core.forget.manual_actions import restore_decisions
from memstate_core.model.errors import MergeUndone, NothingToUndo, NotStale
from memstate_core.model.frames import project
from memstate_core.model.ledger_tables import DECISION
from memstate_core.model.text import iso, iso_expr
from memstate_core.revise.merge_history import merge_list
from memstate_core.revise.unmerge import UNDONE, unmerge_decisions
from memstate_core.run.served_state import Served
from memstate_core.state.fold.decisions import PERSON, READMITTED, REVIEW_ENDED, SET_ASIDE, set_aside

CONFIRMED = "confirmed by a person"


def undo_decisions(served: Served, name: str) -> pl.DataFrame | None:
    """The decisions that undo what an id names (columns DECISION), or None if it names nothing.

    Args:
        served: the shard to look in.
        name: the id of a merge, of a topic that was merged away, of a topic that was archived, detached in part or
            summarised, or of evidence that was set aside.

    Raises:
        MergeUndone: the merge is undone already.
    """
    if name in set_aside(served.transitions):
        return _readmitted(served, name)
    listed = merge_list(served).filter((pl.col("id") == name) | (pl.col("dropped") == name))
    in_force = listed.filter(~pl.col("undone"))
    if in_force.height:
        return unmerge_decisions(served, in_force)
    back = restore_decisions(served, [name], UNDONE)
    if back.height:
        return back
    if listed.height:
        last = listed.row(0, named=True)
        raise MergeUndone(last["id"], last["dropped"], iso(last["undone_at"]))
    return None


def _readmitted(served: Served, name: str) -> pl.DataFrame:
    """The decision that takes a piece of evidence back that was set aside."""
    aside = served.transitions.filter((pl.col("kind") == SET_ASIDE) & pl.col("evidence_ids").list.contains(name)).tail(
        1
    )
    columns = {
        "kind": pl.lit(READMITTED),
        "evidence_ids": pl.lit(pl.Series([[name]])),
        "payload_json": pl.lit("{}"),
        "reason": pl.lit(UNDONE),
    }
    return project(aside.with_columns(**columns), DECISION)


def confirm_decisions(served: Served, topic_ids: Sequence[str]) -> pl.DataFrame:
    """Decisions that end the stale marks of some topics (columns DECISION, one row a topic)."""
    waiting = served.reviews.filter(pl.col("topic_id").is_in(list(topic_ids)))
    rows = waiting.join(served.topics.select("scope", topic_id="id"), on="topic_id")
    payload = pl.struct("cause_topic_id", "hops", actor=pl.lit(PERSON)).struct.json_encode()
    decided = rows.with_columns(kind=pl.lit(REVIEW_ENDED), payload_json=payload, reason=pl.lit(CONFIRMED))
    return project(decided.sort("topic_id"), DECISION, nulls=("evidence_ids",))


def stale_topics(shards: Sequence[Served], names: Sequence[str]) -> dict[str, list[str]]:
    """The living topics that some ids name and that are marked as stale, by shard.

    Raises:
        NotStale: one of them names no stale topic.
    """
    found: dict[str, list[str]] = {}
    for name in names:
        for served in shards:
            topic = served.living(name)
            if topic is not None and topic in served.reviews["topic_id"]:
                found.setdefault(served.snapshot.manifest.shard, []).append(topic)
                break
        else:
            raise NotStale(name)
    return found


def stale_documents(shards: Sequence[Served]) -> list[dict[str, Any]]:
    """The topics marked as stale: `{topic_id, title, reason, cause_topic_id, hops, since}`, oldest first."""
    found = [
        served.reviews.join(served.topics.select("title", topic_id="id"), on="topic_id", how="left")
        for served in shards
    ]
    waiting = pl.concat(found).sort("queued_at", "topic_id")
    since = iso_expr(pl.col("queued_at"))
    return waiting.select("topic_id", "title", "reason", "cause_topic_id", "hops", since=since).to_dicts()


def nothing_to_undo(name: str, shards: Sequence[Served]) -> NothingToUndo:
    """The error for an id that names nothing to undo."""
    return NothingToUndo(name, ", ".join(served.snapshot.name for served in shards))
