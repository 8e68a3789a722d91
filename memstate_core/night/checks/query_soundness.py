"""C1: a default query sees the newest value of each field of topics that are not archived, and nothing else.

The newest value is the one that the ledger's evidence states with the latest valid time.
"""

from __future__ import annotations

import polars as pl

from memstate_core.night.checks.check import Check, check, violating
from memstate_core.night.checks.checked_state import CheckedState
from memstate_core.night.checks.statements import SLOT, newest


def query_soundness(checked: CheckedState) -> Check:
    """Histories are in order, each current value is the newest that evidence states, states agree with flags."""
    active = checked.graph.topics.filter(pl.col("state") == "active")
    return check("C1", [
        *_histories(checked),
        *_marks(checked.graph.topics),
        *outdated(checked, active["id"]),
    ])  # fmt: skip


def outdated(checked: CheckedState, topics: pl.Series) -> list[pl.DataFrame]:
    """Slots of some topics whose current value is not the newest that evidence states, or is missing."""
    own = pl.col("topic_id").is_in(topics.implode())
    revisions = checked.doubtful(checked.graph.revisions)
    stated = newest(checked.stated.filter(own))
    current = revisions.filter(own & (pl.col("rank") == 0))
    both = current.join(stated.select(SLOT).unique(), on=SLOT, how="semi")
    right = both.join(stated, on=[*SLOT, "value_json"], how="semi")
    since = stated.group_by(SLOT).agg(_latest=pl.col("valid_from").max())
    early = both.join(since, on=SLOT).filter(pl.col("valid_from") > pl.col("_latest"))
    unstated = current.join(stated, on=SLOT, how="anti")
    missing = stated.join(current, on=SLOT, how="anti")
    return [
        violating(both.join(right, on="id", how="anti"), "topic_id", "its current value is not the newest in evidence"),
        violating(early, "topic_id", "its current value began later than any evidence says"),
        violating(unstated, "topic_id", "a current value of a field that no evidence names"),
        violating(missing, "topic_id", "a value in evidence has no current revision"),
    ]


def _histories(checked: CheckedState) -> list[pl.DataFrame]:
    revisions, fields = (checked.doubtful(rows) for rows in (checked.graph.revisions, checked.graph.fields))
    rows = revisions.sort(*SLOT, "rank", "valid_from")
    place = pl.int_range(pl.len()).over(SLOT)
    newer = pl.col("valid_from").shift().over(SLOT)
    slots = revisions.filter((pl.col("part") == "field") & (pl.col("rank") == 0)).select("topic_id", "name")
    fields = fields.select("topic_id", "name")
    unpaired = pl.concat([
        fields.join(slots, on=["topic_id", "name"], how="anti"),
        slots.join(fields, on=["topic_id", "name"], how="anti"),
    ])  # fmt: skip
    return [
        violating(rows.filter(place != pl.col("rank")), "topic_id", "ranks are not 0, 1, 2 …"),
        violating(rows.filter(newer < pl.col("valid_from")), "topic_id", "a revision outranks a newer one"),
        violating(unpaired, "topic_id", "a field without a current revision, or a revision without its field"),
    ]


def _marks(topics: pl.DataFrame) -> list[pl.DataFrame]:
    state, target = pl.col("state"), pl.col("merged_into")
    contradicting = (pl.col("archived") != (state == "archived")) | (target.is_not_null() != (state == "merged"))
    living = topics.filter(state != "merged")["id"]
    lost = target.is_not_null() & ~target.is_in(living.implode())
    return [
        violating(topics.filter(contradicting), "id", "state, archived and merged_into contradict each other"),
        violating(topics.filter(lost), "id", "a tombstone does not lead to a living topic"),
    ]
